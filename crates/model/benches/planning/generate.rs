//! Generated large templates.

use std::fmt::Write as _;

/// Four layers of 150 resources, each depending on all lower layers: 600 nodes, 135,000 edges.
pub(crate) fn dense() -> String {
    let mut text = head("dense");
    text.push_str("groups:\n");
    for layer in 0..4 {
        let names: Vec<String> = (0..150).map(|i| format!("r{layer}-{i}x")).collect();
        let _ = writeln!(text, "  - {{name: layer{layer}, resources: [{}]}}", names.join(", "));
    }
    text.push_str("resources:\n");
    for (layer, i) in (0..4).flat_map(|layer| (0..150).map(move |i| (layer, i))) {
        let below: Vec<String> = (0..layer).map(|below| format!("layer{below}")).collect();
        let used = match layer {
            0 => "{{ word }}".to_owned(),
            _ => format!("{{{{ word }}}} {{{{ r{}_{i}x.host }}}}", layer - 1),
        };
        resource(&mut text, &format!("r{layer}-{i}x"), &used, &below);
    }
    text
}

/// Five templates of 2,000 resources; resources depend on six others, in the previous template.
pub(crate) fn large() -> Vec<String> {
    (0..5).map(part).collect()
}

fn part(part: usize) -> String {
    let mut text = head(&format!("part-{part}"));
    if part > 0 {
        let needs: Vec<String> = (0..2000).map(|i| format!("p{}r{i}", part - 1)).collect();
        let _ = writeln!(text, "needs: [{}]", needs.join(", "));
    }
    text.push_str("resources:\n");
    for i in 0..2000 {
        let name = format!("p{part}r{i}");
        let before: Vec<String> = match part {
            0 => (1..=6).filter(|back| *back <= i).map(|back| format!("p0r{}", i - back)).collect(),
            _ => (0..6).map(|n| format!("p{}r{}", part - 1, (i + n * 331) % 2000)).collect(),
        };
        let used = match before.first() {
            Some(first) => format!("{{{{ word }}}} {{{{ {first}.host }}}}"),
            None => "{{ word }}".to_owned(),
        };
        resource(&mut text, &name, &used, &before);
    }
    text
}

fn head(name: &str) -> String {
    format!("name: {name}\nversion: 1.0.0\nparameters: {{word: {{type: string}}}}\n")
}

fn resource(text: &mut String, name: &str, used: &str, after: &[String]) {
    let _ = writeln!(
        text,
        "  - name: {name}\n    executor: consul-kv\n    tags: {{team: shop}}\n    with: {{prefix: \
         {name}/, values: {{used: '{used}', mode: fast}}}}\n    depends_on: [{}]",
        after.join(", ")
    );
}
