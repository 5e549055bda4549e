//! Rust text without its comments and literals.

/// Replaces comments and the insides of string and character literals by blanks; line breaks
/// stay, so that line numbers do.
///
/// This is a lexer for the purpose of finding words, not a parser: it knows nested comments, raw
/// strings and the difference of `'a'` and `'a`.
pub(super) fn only(text: &str) -> String {
    let mut rest = text;
    let mut code = String::with_capacity(text.len());
    while let Some(first) = rest.chars().next() {
        let word =
            code.chars().next_back().is_some_and(|last| last.is_alphanumeric() || last == '_');
        let blank = match first {
            '/' => comment(rest),
            '"' => Some(quoted(rest, '"')),
            '\'' => character(rest),
            'r' if !word || code.ends_with('b') || code.ends_with('c') => raw_string(rest),
            _ => None,
        };
        let length = blank.unwrap_or(first.len_utf8());
        let (taken, left) = rest.split_at(length);
        if blank.is_some() {
            code.extend(taken.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            code.push(first);
        }
        rest = left;
    }
    code
}

/// The length of the comment that `text` starts with.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    Some(text.len())
}

/// The length of the literal between two `quote`s that `text` starts with.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + 1;
        }
    }
    text.len()
}

/// The length of the character literal that `text` starts with; `None` for a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut inside = text[1..].chars();
    let first = inside.next()?;
    if first == '\\' || inside.next() == Some('\'') { Some(quoted(text, '\'')) } else { None }
}

/// The length of the raw string that `text` starts with.
fn raw_string(text: &str) -> Option<usize> {
    let inside = text[1..].trim_start_matches('#');
    let hashes = text.len() - 1 - inside.len();
    let body = inside.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - body.len();
    Some(body.find(&end).map_or(text.len(), |at| start + at + end.len()))
}

#[cfg(test)]
mod tests {
    use super::only;

    #[test]
    fn comments_and_literals_are_blank() {
        let check = |text: &str, words: &[&str]| {
            let code = only(text);
            assert_eq!(code.split_whitespace().collect::<Vec<_>>(), words, "{text}");
            assert_eq!(code.lines().count(), text.lines().count(), "{text}");
        };
        check("a // b\nc", &["a", "c"]);
        check("a /* b /* c\n */ d */ e", &["a", "e"]);
        check("a /* b", &["a"]);
        check(r#"a "b \" c" d"#, &["a", "d"]);
        check("a \"b\nc\" d", &["a", "d"]);
        check(r##"a r#"b " c"# d"##, &["a", "d"]);
        check(r#"a r"b \" d"#, &["a", "d"]);
        check(r#"a br"b" c"b" d"#, &["a", "b", "c", "d"]);
        check("a '\"' b '\\'' c 'x' d", &["a", "b", "c", "d"]);
        check("&'a str, 'b'", &["&'a", "str,"]);
        check("a / b", &["a", "/", "b"]);
        check("r#type r", &["r#type", "r"]);
        check("ä 'ö' // ü", &["ä"]);
        check("\"open", &[]);
    }
}
