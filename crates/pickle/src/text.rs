//! The textual arguments of the older opcodes: numbers, quoted strings, raw-unicode-escape.
//!
//! Pure functions; `None` means the text is not what its opcode promises.

/// A decimal integer as INT and LONG write it. Rust accepts no underscores and no blanks, neither
/// does any pickler write them.
pub(crate) fn integer(line: &[u8]) -> Option<i64> {
    std::str::from_utf8(line).ok()?.parse().ok()
}

/// A float as Python's `repr` writes it.
pub(crate) fn float(line: &[u8]) -> Option<f64> {
    std::str::from_utf8(line).ok()?.parse().ok()
}

/// The little-endian two's complement integer of LONG1 and LONG4; `None` if beyond 64 bits.
pub(crate) fn long(bytes: &[u8]) -> Option<i64> {
    let negative = bytes.last().is_some_and(|last| last & 0x80 != 0);
    let filler = if negative { 0xff } else { 0 };
    let mut padded = [filler; 8];
    if bytes.len() > 8 {
        let sign_kept = (bytes[7] & 0x80 != 0) == negative;
        if !sign_kept || bytes[8..].iter().any(|&byte| byte != filler) {
            return None;
        }
    }
    let len = bytes.len().min(8);
    padded[..len].copy_from_slice(&bytes[..len]);
    Some(i64::from_le_bytes(padded))
}

/// A Python 2 string literal with its quotes, as STRING writes it.
pub(crate) fn quoted(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (&quote, rest) = line.split_first()?;
    let (&end, body) = rest.split_last()?;
    if quote != end || !matches!(quote, b'\'' | b'"') {
        return None;
    }
    let mut out = Vec::with_capacity(body.len());
    let mut bytes = body.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next()? {
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'v' => out.push(11),
            b'x' => out.push(hex(&[bytes.next()?, bytes.next()?])? as u8),
            same @ (b'\\' | b'\'' | b'"') => out.push(same),
            other => out.extend([b'\\', other]),
        }
    }
    Some(out)
}

/// Raw-unicode-escape as UNICODE writes it: Latin-1 with `\uXXXX` and `\UXXXXXXXX`. Surrogate
/// pairs, which narrow builds of Python 2 wrote, are joined; a lone surrogate is refused.
pub(crate) fn raw_unicode(line: &[u8]) -> Option<String> {
    let mut units = String::with_capacity(line.len());
    let mut high: Option<u32> = None;
    let mut at = 0;
    while at < line.len() {
        let (code, used) = raw_character(&line[at..])?;
        at += used;
        match (high.take(), code) {
            (None, 0xd800..=0xdbff) => high = Some(code),
            (Some(first), 0xdc00..=0xdfff) => {
                let joined = 0x10000 + ((first - 0xd800) << 10) + (code - 0xdc00);
                units.push(char::from_u32(joined)?);
            }
            (None, _) => units.push(char::from_u32(code)?),
            (Some(_), _) => return None,
        }
        // A backslash that escapes nothing also shields the character behind it.
        if code == u32::from(b'\\') && used == 1 && at < line.len() && high.is_none() {
            units.push(char::from(line[at]));
            at += 1;
        }
    }
    high.is_none().then_some(units)
}

/// One code point and how many bytes it took.
fn raw_character(line: &[u8]) -> Option<(u32, usize)> {
    match line {
        [b'\\', b'u', rest @ ..] => Some((hex(rest.get(..4)?)?, 6)),
        [b'\\', b'U', rest @ ..] => Some((hex(rest.get(..8)?)?, 10)),
        [byte, ..] => Some((u32::from(*byte), 1)),
        [] => None,
    }
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0u32, |sum, &digit| {
        let value = char::from(digit).to_digit(16)?;
        Some(sum.checked_mul(16)? + value)
    })
}

/// The bytes of `_codecs.encode(text, 'latin1')`.
pub(crate) fn latin1(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|character| u8::try_from(character).ok()).collect()
}
