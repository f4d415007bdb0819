//! PTX as far as names, parameters and module variables go.

use super::image::{Image, KernelInfo, Variable};

/// The kernels and variables of a module; `None` for text that is no PTX.
pub fn parse(text: &str) -> Option<Image> {
    let tokens = tokens(text);
    let after = |word: &str| {
        tokens
            .iter()
            .position(|t| *t == word)
            .and_then(|at| tokens.get(at + 1))
            .copied()
    };
    let version = after(".version")?.replace('.', "").parse().unwrap_or(0);
    let target = after(".target")?;
    let digits = target.trim_start_matches(|c: char| !c.is_ascii_digit());
    let digits = digits.trim_end_matches(|c: char| !c.is_ascii_digit());
    let architecture = digits.parse().unwrap_or(0);
    let mut image = Image {
        kernels: Some(Vec::new()),
        variables: Vec::new(),
    };
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            ".entry" if depth == 0 => {
                let mut kernel = kernel(&tokens[at + 1..])?;
                kernel.architecture = architecture;
                kernel.ptx_version = version;
                image.kernels.get_or_insert_default().push(kernel);
            }
            ".global" | ".const" if depth == 0 => image.variables.extend(variable(&tokens[at + 1..])),
            _ => {}
        }
    }
    Some(image)
}

/// Words and single signs, without comments and strings.
fn tokens(text: &str) -> Vec<&str> {
    let mut list = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        } else if let Some(string) = rest.strip_prefix('"') {
            rest = string.split_once('"').map_or("", |(_, after)| after);
        } else {
            let word = |c: char| c.is_ascii_alphanumeric() || "_$.%".contains(c);
            let length = match rest.find(|c| !word(c)) {
                Some(0) => first.len_utf8(),
                Some(length) => length,
                None => rest.len(),
            };
            let (token, after) = rest.split_at(length);
            if !first.is_whitespace() {
                list.push(token);
            }
            rest = after;
        }
    }
    list
}

/// Bytes of a fundamental type: `.u64` is 8.
fn size_of(kind: &str) -> Option<u32> {
    let digits = kind
        .strip_prefix('.')?
        .trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let lanes = if digits.contains("x2") { 2 } else { 1 };
    let bits: u32 = digits.split('x').next()?.parse().ok()?;
    matches!(bits, 8 | 16 | 32 | 64 | 128).then_some(bits / 8 * lanes)
}

/// One declared thing: name, bytes of all of it, alignment, and how many tokens it took.
fn declaration(tokens: &[&str]) -> Option<(String, u32, u32, usize)> {
    let (mut element, mut align, mut name) = (None, None, None);
    let mut at = 0;
    while let Some(&token) = tokens.get(at) {
        match token {
            ".align" => {
                // Of the pointer's target, once the type is known.
                let value: u32 = tokens.get(at + 1)?.parse().ok()?;
                if element.is_none() {
                    align = Some(value);
                }
                at += 1;
            }
            _ if token.starts_with('.') => element = element.or(size_of(token)),
            "," | ")" | ";" | "=" | "{" | "[" => break,
            _ => name = Some(token),
        }
        at += 1;
    }
    let element = element?;
    let mut count = 1u32;
    while tokens.get(at) == Some(&"[") {
        let length = tokens.get(at + 1)?;
        if *length == "]" {
            at += 2;
            continue;
        }
        count = count.checked_mul(length.parse().ok()?)?;
        at += 3;
    }
    Some((
        name?.to_owned(),
        element.checked_mul(count)?,
        align.unwrap_or(element).max(1),
        at,
    ))
}

/// From behind `.entry`: name, parameters, directives up to the body.
fn kernel(tokens: &[&str]) -> Option<KernelInfo> {
    let mut kernel = KernelInfo {
        name: (*tokens.first()?).to_owned(),
        ..KernelInfo::default()
    };
    let mut parameters = Vec::new();
    let mut at = 1;
    if tokens.get(at) == Some(&"(") {
        at += 1;
        let mut offset = 0u32;
        while *tokens.get(at)? != ")" {
            if matches!(tokens[at], "," | ".param") {
                at += 1;
                continue;
            }
            let (_, bytes, align, used) = declaration(&tokens[at..])?;
            offset = offset.checked_next_multiple_of(align)?;
            parameters.push((offset, bytes));
            offset = offset.checked_add(bytes)?;
            at += used.max(1);
        }
    }
    kernel.parameters = Some(parameters);
    while let Some(&token) = tokens.get(at).filter(|token| !matches!(**token, "{" | ";")) {
        if token == ".maxntid" || token == ".reqntid" {
            let sides = tokens[at + 1..]
                .iter()
                .take_while(|t| **t == "," || t.parse::<u32>().is_ok());
            let sides = sides.filter_map(|t| t.parse::<u32>().ok());
            kernel.max_threads = sides.fold(1, u32::saturating_mul);
        }
        at += 1;
    }
    Some(kernel)
}

/// From behind a module's `.global` or `.const`.
fn variable(tokens: &[&str]) -> Option<Variable> {
    let managed = tokens
        .iter()
        .take_while(|t| !matches!(**t, ";" | "="))
        .any(|t| *t == ".attribute");
    // `.attribute(.managed)` stands before the type.
    let skip = if managed {
        tokens.iter().position(|t| *t == ")")? + 1
    } else {
        0
    };
    let (name, bytes, _, _) = declaration(&tokens[skip..])?;
    Some(Variable {
        name,
        bytes: bytes as u64,
        content: Vec::new(),
        managed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
        // a comment with .entry nothing
        .version 8.6
        .target sm_90a
        .address_size 64
        .global .align 4 .b8 table[16];
        .visible .global .u32 counter = 7;
        .global .attribute(.managed) .align 8 .b8 shared_state[8];
        .const .align 4 .b8 coefficients[12];
        .visible .entry _Z3addPfi(
            .param .u64 .ptr .global .align 16 _Z3addPfi_param_0,
            .param .u32 _Z3addPfi_param_1,
            .param .align 8 .b8 _Z3addPfi_param_2[24],
            .param .u8 _Z3addPfi_param_3
        )
        .maxntid 128, 2, 1
        { .local .align 4 .b8 depot[4]; ret; }
        .entry bare { ret; }
        .visible .entry empty() { ret; }
        .func helper(.param .b32 x) { ret; }
    ";

    #[test]
    fn kernels_with_the_layout_of_their_parameters() {
        let kernels = parse(TEXT).and_then(|image| image.kernels).expect("PTX");
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["_Z3addPfi", "bare", "empty"]);
        assert_eq!(
            kernels[0].parameters,
            Some(vec![(0, 8), (8, 4), (16, 24), (40, 1)])
        );
        assert_eq!(kernels[0].max_threads, 256);
        assert_eq!((kernels[0].architecture, kernels[0].ptx_version), (90, 86));
        assert_eq!(kernels[1].parameters, Some(vec![]));
    }

    #[test]
    fn module_variables_with_their_sizes() {
        let variables = parse(TEXT).expect("PTX").variables;
        let sizes: Vec<(&str, u64, bool)> = variables
            .iter()
            .map(|v| (v.name.as_str(), v.bytes, v.managed))
            .collect();
        assert_eq!(
            sizes,
            [
                ("table", 16, false),
                ("counter", 4, false),
                ("shared_state", 8, true),
                ("coefficients", 12, false)
            ]
        );
    }

    #[test]
    fn other_text_is_no_ptx() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("hello .entry world"), None);
    }
}
