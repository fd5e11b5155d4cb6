//! The parser of searches.

use super::{Error, Expr, MAX_BYTES, MAX_DEPTH, MAX_JOINS, Op};

/// Parses a search over these columns and operators. An empty text means no search.
pub fn parse(text: &str, columns: &[&str], operators: &[Op]) -> Result<Option<Expr>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() > MAX_BYTES {
        let reason = format!("a search may have at most {MAX_BYTES} bytes");
        return Err(Error { position: 1, token: String::new(), reason });
    }
    let mut parser = Parser { text, at: 0, joins: 0, depth: 0, columns, operators };
    let expr = parser.expr()?;
    parser.skip_whitespace();
    if parser.at < text.len() {
        return Err(parser.error("expected AND, OR or end of input"));
    }
    Ok(Some(expr))
}

struct Parser<'a> {
    text: &'a str,
    /// The position of the next byte.
    at: usize,
    joins: usize,
    depth: usize,
    columns: &'a [&'a str],
    operators: &'a [Op],
}

impl<'a> Parser<'a> {
    fn expr(&mut self) -> Result<Expr, Error> {
        self.chain("or", Parser::conjunction, Expr::Or)
    }

    fn conjunction(&mut self) -> Result<Expr, Error> {
        self.chain("and", Parser::term, Expr::And)
    }

    /// Parses one part, or several joined by a keyword.
    fn chain(
        &mut self,
        join: &str,
        part: fn(&mut Self) -> Result<Expr, Error>,
        combine: fn(Vec<Expr>) -> Expr,
    ) -> Result<Expr, Error> {
        let first = part(self)?;
        let mut parts = vec![first];
        while self.join(join)? {
            parts.push(part(self)?);
        }
        if parts.len() > 1 { Ok(combine(parts)) } else { Ok(parts.remove(0)) }
    }

    fn term(&mut self) -> Result<Expr, Error> {
        self.skip_whitespace();
        if !self.consume("(") {
            return self.predicate();
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(
                self.error(format!("parentheses may be nested at most {MAX_DEPTH} levels deep"))
            );
        }
        let inner = self.expr()?;
        self.depth -= 1;
        self.skip_whitespace();
        if self.consume(")") { Ok(inner) } else { Err(self.error("expected AND, OR or )")) }
    }

    fn predicate(&mut self) -> Result<Expr, Error> {
        let column = self.column()?;
        self.skip_whitespace();
        let start = self.at;
        let not = self.join("not")?;
        let op = self.op()?;
        if not && op != Op::In {
            self.at = start;
            return Err(self.error("NOT is only allowed before IN"));
        }
        if op == Op::In {
            return Ok(Expr::In { column, not, values: self.values()? });
        }
        let start = self.at;
        let value = self.value(false)?;
        if matches!(op, Op::Like | Op::ILike) && ends_in_escape(&value) {
            self.at = start;
            self.skip_whitespace();
            return Err(self.error("a pattern must not end with a backslash"));
        }
        Ok(Expr::Compare { column, op, value })
    }

    fn column(&mut self) -> Result<String, Error> {
        let word = self.word();
        match self.columns.iter().find(|column| column.eq_ignore_ascii_case(word)) {
            Some(column) => {
                self.at += word.len();
                Ok((*column).to_owned())
            }
            None => Err(self.error(format!("must be one of {}", self.columns.join(", ")))),
        }
    }

    fn op(&mut self) -> Result<Op, Error> {
        self.skip_whitespace();
        let start = self.at;
        let op = Op::ALL.into_iter().find(|op| match op {
            Op::Eq | Op::Ne => self.consume(op.as_str()),
            _ => self.keyword(op.as_str()),
        });
        op.filter(|op| self.operators.contains(op)).ok_or_else(|| {
            let known: Vec<_> = self.operators.iter().map(|op| op.as_str()).collect();
            Error::new(self.text, start, format!("must be one of {}", known.join(", ")))
        })
    }

    fn values(&mut self) -> Result<Vec<String>, Error> {
        self.skip_whitespace();
        if !self.consume("(") {
            return Err(self.error("expected ("));
        }
        let mut values = vec![self.value(true)?];
        loop {
            self.skip_whitespace();
            if self.consume(")") {
                return Ok(values);
            }
            if !self.consume(",") {
                return Err(self.error("expected , or )"));
            }
            values.push(self.value(true)?);
        }
    }

    fn value(&mut self, in_list: bool) -> Result<String, Error> {
        self.skip_whitespace();
        let start = self.at;
        let value =
            if self.rest().starts_with('\'') { self.quoted()? } else { self.bare(in_list)? };
        // Databases can't store NUL.
        if value.contains('\0') {
            return Err(Error::new(self.text, start, "a value must not contain a NUL character"));
        }
        Ok(value)
    }

    fn bare(&mut self, in_list: bool) -> Result<String, Error> {
        let is_end =
            |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '^') || (in_list && c == ',');
        let length = self.rest().find(is_end).unwrap_or(self.rest().len());
        if length == 0 {
            return Err(self.error("expected a value"));
        }
        let value = self.rest()[..length].to_owned();
        self.at += length;
        Ok(value)
    }

    fn quoted(&mut self) -> Result<String, Error> {
        let mut value = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((i, c)) = chars.next() {
            match c {
                '\'' => {
                    self.at += i + 1;
                    return Ok(value);
                }
                '\\' if chars.next_if(|(_, c)| *c == '\'').is_some() => value.push('\''),
                c => value.push(c),
            }
        }
        Err(self.error("closing quote is missing"))
    }

    /// Consumes a keyword that counts towards the limit of joins.
    fn join(&mut self, word: &str) -> Result<bool, Error> {
        self.skip_whitespace();
        let start = self.at;
        if !self.keyword(word) {
            return Ok(false);
        }
        self.joins += 1;
        if self.joins > MAX_JOINS {
            let reason = format!("a search may have at most {MAX_JOINS} of AND, OR and NOT");
            return Err(Error::new(self.text, start, reason));
        }
        Ok(true)
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let word = self.word();
        let is_match = word.eq_ignore_ascii_case(keyword);
        self.at += if is_match { word.len() } else { 0 };
        is_match
    }

    fn consume(&mut self, symbol: &str) -> bool {
        let is_next = self.rest().starts_with(symbol);
        self.at += if is_next { symbol.len() } else { 0 };
        is_next
    }

    fn skip_whitespace(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// The next run of letters, digits and underscores.
    fn word(&self) -> &'a str {
        let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let rest = self.rest();
        &rest[..rest.find(is_end).unwrap_or(rest.len())]
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error(&self, reason: impl Into<String>) -> Error {
        Error::new(self.text, self.at, reason)
    }
}

/// Does a pattern end with an unpaired backslash?
fn ends_in_escape(pattern: &str) -> bool {
    (pattern.len() - pattern.trim_end_matches('\\').len()) % 2 == 1
}
