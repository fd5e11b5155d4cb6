//! What is there once everything was made.

use model::resource::Status;
use model::template::{Act, Context, Existing, Expanded, fill};

/// What exists, and what it gives.
pub(crate) struct World {
    pub(crate) exists: Vec<Existing>,
    pub(crate) context: Context,
}

impl World {
    /// As after a plan for this was carried out.
    pub(crate) fn of(wish: &Expanded) -> Self {
        let mut context = Context { parameters: wish.parameters.clone(), ..Context::default() };
        let mut exists = Vec::with_capacity(wish.nodes.len());
        for node in &wish.nodes {
            let applied = fill(node, &context).expect("what it uses is there");
            let outputs = crate::outputs(&node.name);
            context.outputs.insert(node.name.clone(), outputs.clone());
            exists.push(Existing {
                name: node.name.clone(),
                executor: node.executor,
                status: Status::Applied,
                print: Some(node.print.clone()),
                applied: Some(applied),
                outputs,
                after: node.after.clone(),
                act: Act::Nothing,
                is_begun: true,
            });
        }
        Self { exists, context }
    }
}
