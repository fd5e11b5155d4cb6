//! The existing state after everything was applied.

use model::resource::Status;
use model::template::{Act, Context, Existing, Expanded, fill};

/// Existing resources and their outputs.
pub(crate) struct World {
    pub(crate) existing: Vec<Existing>,
    pub(crate) context: Context,
}

impl World {
    /// The state after applying a plan for this desired state.
    pub(crate) fn applied(desired: &Expanded) -> Self {
        let mut context = Context { parameters: desired.parameters.clone(), ..Context::default() };
        let mut existing = Vec::with_capacity(desired.nodes.len());
        for node in &desired.nodes {
            let applied = fill(node, &context).expect("dependencies are applied first");
            let outputs = crate::outputs(&node.name);
            context.outputs.insert(node.name.clone(), outputs.clone());
            existing.push(Existing {
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
        Self { existing, context }
    }
}
