//! Reads a search.

use super::{Error, Expr, MAX_BYTES, MAX_DEPTH, MAX_JOINS, Op};

/// Reads a search over these columns with these operators. The empty text is no search.
pub fn parse(text: &str, columns: &[&str], operators: &[Op]) -> Result<Option<Expr>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() > MAX_BYTES {
        let reason = format!("a search has at most {MAX_BYTES} bytes");
        return Err(Error { position: 1, token: String::new(), reason });
    }
    let mut parser = Parser { text, at: 0, joins: 0, depth: 0, columns, operators };
    let expr = parser.expr()?;
    parser.blanks();
    if parser.at < text.len() {
        return Err(parser.wrong("AND, OR or the end is expected"));
    }
    Ok(Some(expr))
}

struct Parser<'a> {
    text: &'a str,
    /// The byte that is next.
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

    /// One part, or several with a keyword between them.
    fn chain(
        &mut self,
        join: &str,
        part: fn(&mut Self) -> Result<Expr, Error>,
        together: fn(Vec<Expr>) -> Expr,
    ) -> Result<Expr, Error> {
        let first = part(self)?;
        let mut parts = vec![first];
        while self.joined_by(join)? {
            parts.push(part(self)?);
        }
        if parts.len() > 1 { Ok(together(parts)) } else { Ok(parts.remove(0)) }
    }

    fn term(&mut self) -> Result<Expr, Error> {
        self.blanks();
        if !self.take("(") {
            return self.predicate();
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.wrong(format!("parentheses are at most {MAX_DEPTH} deep")));
        }
        let inner = self.expr()?;
        self.depth -= 1;
        self.blanks();
        if self.take(")") { Ok(inner) } else { Err(self.wrong("AND, OR or ) is expected")) }
    }

    fn predicate(&mut self) -> Result<Expr, Error> {
        let column = self.column()?;
        self.blanks();
        let start = self.at;
        let not = self.joined_by("not")?;
        let op = self.op()?;
        if not && op != Op::In {
            self.at = start;
            return Err(self.wrong("NOT stands only before IN"));
        }
        if op == Op::In {
            return Ok(Expr::In { column, not, values: self.values()? });
        }
        let start = self.at;
        let value = self.value(false)?;
        if matches!(op, Op::Like | Op::ILike) && ends_in_escape(&value) {
            self.at = start;
            self.blanks();
            return Err(self.wrong("a pattern must not end with a backslash"));
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
            None => Err(self.wrong(format!("must be one of {}", self.columns.join(", ")))),
        }
    }

    fn op(&mut self) -> Result<Op, Error> {
        self.blanks();
        let start = self.at;
        let op = Op::ALL.into_iter().find(|op| match op {
            Op::Eq | Op::Ne => self.take(op.as_str()),
            _ => self.keyword(op.as_str()),
        });
        op.filter(|op| self.operators.contains(op)).ok_or_else(|| {
            let known: Vec<_> = self.operators.iter().map(|op| op.as_str()).collect();
            Error::new(self.text, start, format!("must be one of {}", known.join(", ")))
        })
    }

    fn values(&mut self) -> Result<Vec<String>, Error> {
        self.blanks();
        if !self.take("(") {
            return Err(self.wrong("( is expected"));
        }
        let mut values = vec![self.value(true)?];
        loop {
            self.blanks();
            if self.take(")") {
                return Ok(values);
            }
            if !self.take(",") {
                return Err(self.wrong(", or ) is expected"));
            }
            values.push(self.value(true)?);
        }
    }

    fn value(&mut self, in_list: bool) -> Result<String, Error> {
        self.blanks();
        let start = self.at;
        let value =
            if self.rest().starts_with('\'') { self.quoted()? } else { self.bare(in_list)? };
        // Databases can't hold it.
        if value.contains('\0') {
            return Err(Error::new(self.text, start, "a value must not have a zero character"));
        }
        Ok(value)
    }

    fn bare(&mut self, in_list: bool) -> Result<String, Error> {
        let is_end =
            |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '^') || (in_list && c == ',');
        let length = self.rest().find(is_end).unwrap_or(self.rest().len());
        if length == 0 {
            return Err(self.wrong("a value is expected"));
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
        Err(self.wrong("the closing quote is missing"))
    }

    /// Takes a keyword that counts as a join.
    fn joined_by(&mut self, word: &str) -> Result<bool, Error> {
        self.blanks();
        let start = self.at;
        if !self.keyword(word) {
            return Ok(false);
        }
        self.joins += 1;
        if self.joins > MAX_JOINS {
            let reason = format!("a search has at most {MAX_JOINS} of AND, OR and NOT");
            return Err(Error::new(self.text, start, reason));
        }
        Ok(true)
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let word = self.word();
        let is_it = word.eq_ignore_ascii_case(keyword);
        self.at += if is_it { word.len() } else { 0 };
        is_it
    }

    fn take(&mut self, symbol: &str) -> bool {
        let is_next = self.rest().starts_with(symbol);
        self.at += if is_next { symbol.len() } else { 0 };
        is_next
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// The letters, digits and underscores that are next.
    fn word(&self) -> &'a str {
        let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let rest = self.rest();
        &rest[..rest.find(is_end).unwrap_or(rest.len())]
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn wrong(&self, reason: impl Into<String>) -> Error {
        Error::new(self.text, self.at, reason)
    }
}

/// Does a pattern end with a backslash that has nothing to stand before?
fn ends_in_escape(pattern: &str) -> bool {
    (pattern.len() - pattern.trim_end_matches('\\').len()) % 2 == 1
}
