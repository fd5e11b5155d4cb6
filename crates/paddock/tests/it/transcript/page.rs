//! A Markdown page as text and steps of its `console` blocks.

/// A page, in order.
pub(super) struct Page {
    pub(super) parts: Vec<Part>,
}

/// Part of a page.
pub(super) enum Part {
    /// Lines that are not executed.
    Text(String),
    /// `<!-- needs: … -->`: external systems of the server that is started next.
    Needs(Vec<String>),
    /// A command with its output.
    Step(Step),
}

/// A command with its documented output.
pub(super) struct Step {
    /// Number of its line in the page.
    pub(super) line: usize,
    pub(super) command: String,
    pub(super) output: Vec<String>,
}

const NEEDS: &str = "<!-- needs: ";

impl Page {
    pub(super) fn parse(text: &str) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        let mut is_console = false;
        for (line, text) in (1..).zip(text.lines()) {
            if text.starts_with("```") {
                is_console = text == "```console";
                parts.push(Part::Text(text.into()));
            } else if !is_console {
                parts.push(prose(text));
            } else if let Some(command) = text.strip_prefix("$ ") {
                parts.push(Part::Step(Step { line, command: command.into(), output: Vec::new() }));
            } else {
                let Some(Part::Step(step)) = parts.last_mut() else {
                    panic!("line {line}: output without a command: {text}");
                };
                match text.strip_prefix("> ") {
                    Some(more) if step.output.is_empty() => {
                        step.command.push('\n');
                        step.command.push_str(more);
                    }
                    _ => step.output.push(text.into()),
                }
            }
        }
        Self { parts }
    }

    /// Whether the page has no steps.
    pub(super) fn is_empty(&self) -> bool {
        !self.parts.iter().any(|part| matches!(part, Part::Step(_)))
    }

    /// The page as Markdown.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        let mut push = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        for part in &self.parts {
            match part {
                Part::Text(line) => push(line),
                Part::Needs(systems) => push(&format!("{NEEDS}{} -->", systems.join(" "))),
                Part::Step(step) => {
                    push(&format!("$ {}", step.command.replace('\n', "\n> ")));
                    step.output.iter().for_each(|line| push(line));
                }
            }
        }
        text
    }
}

fn prose(line: &str) -> Part {
    let needs = line.strip_prefix(NEEDS).and_then(|rest| rest.strip_suffix(" -->"));
    match needs {
        Some(systems) => Part::Needs(systems.split_whitespace().map(String::from).collect()),
        None => Part::Text(line.into()),
    }
}

#[test]
fn page_is_rendered_as_it_was_parsed() {
    let text = "# Page\n\n<!-- needs: consul vault -->\n```sh\n$ not executed\n```\n\n```console\n$ \
                paddock one \\\n> --two\nfirst\n> not a command\n$ paddock three\n```\nEnd\n";
    let page = Page::parse(text);
    assert_eq!(page.render(), text);
    let steps: Vec<&Step> = page
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Step(step) => Some(step),
            _ => None,
        })
        .collect();
    assert_eq!(steps.len(), 2);
    assert_eq!(steps[0].command, "paddock one \\\n--two");
    assert_eq!(steps[0].output, ["first", "> not a command"]);
    assert_eq!(steps[1].line, 13);
}
