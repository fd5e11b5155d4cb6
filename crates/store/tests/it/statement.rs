//! Every statement of the store is prepared on both engines, with the same parameters.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use testing::{Engine, on_both_engines};

use crate::support::database;

on_both_engines! {
    async fn every_statement_is_prepared(engine: Engine) {
        let database = database(engine).await;
        let statements = statements();
        assert!(statements.len() >= 60, "only {} were found", statements.len());
        let prepared = match engine {
            Engine::Sqlite => prepare_on_sqlite(&database.url(), &statements),
            Engine::Postgres => prepare_on_postgres(&database.url(), &statements).await,
        };
        for (statement, parameters) in statements.iter().zip(prepared) {
            let Statement { file, sql } = statement;
            let parameters = parameters.unwrap_or_else(|error| panic!("{file}: {sql}\n{error}"));
            assert_eq!(parameters, numbers_in(sql), "{file}: {sql}");
        }
    }
}

/// The number of parameters of each statement, or why it can't be prepared.
type Prepared = Vec<Result<usize, String>>;

fn prepare_on_sqlite(url: &str, statements: &[Statement]) -> Prepared {
    let path = url.strip_prefix("sqlite:").unwrap();
    let connection = rusqlite::Connection::open(path).unwrap();
    let prepare = |sql: &str| Ok(connection.prepare(sql)?.parameter_count());
    let reason = |error: rusqlite::Error| error.to_string();
    statements.iter().map(|statement| prepare(&statement.sql).map_err(reason)).collect()
}

async fn prepare_on_postgres(url: &str, statements: &[Statement]) -> Prepared {
    let (client, connection) =
        tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("PostgreSQL answers");
    base::task::spawn("statements", connection);
    let mut prepared = Vec::new();
    for statement in statements {
        let outcome = client.prepare(&statement.sql).await;
        prepared.push(outcome.map(|s| s.params().len()).map_err(|e| format!("{e:?}")));
    }
    prepared
}

/// The number of parameters in a statement; they must be numbered without a gap.
fn numbers_in(sql: &str) -> usize {
    let numbers: BTreeSet<usize> = sql
        .split('$')
        .skip(1)
        .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>())
        .map(|digits| digits.parse().expect("a number after $"))
        .collect();
    assert!(numbers.iter().copied().eq(1..=numbers.len()), "gap in {sql}");
    numbers.len()
}

struct Statement {
    file: String,
    sql: String,
}

/// All statements of the crate: one per `sql!(`, and the generated ones of `subject`.
fn statements() -> Vec<Statement> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut statements = Vec::new();
    for file in files_below(&src) {
        let text = std::fs::read_to_string(&file).unwrap();
        let columns = columns_of(&file, &text);
        let found = text.match_indices("sql!(").map(|(at, start)| {
            let sql = assemble(&text[at + start.len()..], columns.as_deref());
            Statement { file: file.display().to_string(), sql }
        });
        statements.extend(found);
    }
    let file = "subject.rs".to_owned();
    statements
        .extend(store::statements().into_iter().map(|sql| Statement { file: file.clone(), sql }));
    statements
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The meaning of `columns!()` in a file: its own macro, its `row!`, or that of the parent module.
fn columns_of(file: &Path, text: &str) -> Option<String> {
    if let Some((_, rest)) = text.split_once("\nrow! {") {
        let columns = rest.split_once(':')?.1.split_once(';')?.0;
        // `field`, `field as json` or `field in "column"`.
        let name = |column: &'_ str| match column.split_once('"') {
            Some((_, rest)) => Some(literal(rest).0),
            None => column.split_whitespace().next().map(str::to_owned),
        };
        return Some(columns.split(',').filter_map(name).collect::<Vec<_>>().join(", "));
    }
    if let Some((_, rest)) = text.split_once("macro_rules! columns {") {
        return Some(literal(rest.split_once('"')?.1).0);
    }
    let above = file.parent()?.with_extension("rs");
    columns_of(&above, &std::fs::read_to_string(&above).ok()?)
}

/// The text of one statement: string literals and `columns!()`, up to the closing bracket.
fn assemble(mut rest: &str, columns: Option<&str>) -> String {
    let mut sql = String::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if rest.starts_with("//") {
            rest = rest.split_once('\n').expect("a line after the comment").1;
        } else if let Some(after) = rest.strip_prefix('"') {
            let (text, after) = literal(after);
            sql.push_str(&text);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("columns!()") {
            sql.push_str(columns.expect("a macro of that name"));
            rest = after;
        } else {
            assert!(rest.starts_with(')'), "neither text nor columns: {rest:.40}");
            return sql;
        }
    }
}

/// A string literal after its opening quote, and the rest.
fn literal(source: &str) -> (String, &str) {
    let mut text = String::new();
    let mut chars = source.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, &source[at + 1..]),
            '\\' => match chars.next().expect("something is escaped").1 {
                '\n' => while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {},
                escaped => text.push(escaped),
            },
            c => text.push(c),
        }
    }
    panic!("unterminated literal");
}
