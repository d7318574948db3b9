//! Archives made by hand, byte for byte.

/// A MessagePack value.
#[derive(Clone, Debug)]
pub enum Value {
    Nil,
    Minus(i8),
    Float(f64),
    Number(u64),
    Text(Vec<u8>),
    Binary(Vec<u8>),
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
    /// Bytes that are already encoded.
    Raw(Vec<u8>),
}

pub fn text(text: &str) -> Value {
    Value::Text(text.as_bytes().to_vec())
}

/// Nested arrays with this number of levels.
pub fn deep(levels: usize) -> Value {
    Value::Raw([vec![0x91; levels], vec![0xc0]].concat())
}

/// A map with these keys.
pub fn map<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    Value::Map(pairs.into_iter().map(|(key, value)| (text(key), value)).collect())
}

pub fn texts(items: &[&str]) -> Value {
    Value::Array(items.iter().map(|item| text(item)).collect())
}

impl Value {
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nil => out.push(0xc0),
            Self::Minus(number) => out.extend([0xd0, number.to_be_bytes()[0]]),
            Self::Float(number) => {
                out.push(0xcb);
                out.extend(number.to_be_bytes());
            }
            Self::Number(number) if *number < 128 => out.push(u8::try_from(*number).unwrap()),
            Self::Number(number) => {
                out.push(0xcf);
                out.extend(number.to_be_bytes());
            }
            Self::Text(text) if text.len() < 32 => {
                out.push(0xa0 | u8::try_from(text.len()).unwrap());
                out.extend(text);
            }
            Self::Text(text) => {
                write_length(out, 0xdb, text.len());
                out.extend(text);
            }
            Self::Binary(bytes) => {
                write_length(out, 0xc6, bytes.len());
                out.extend(bytes);
            }
            Self::Array(items) => {
                write_length(out, 0xdd, items.len());
                items.iter().for_each(|item| item.write(out));
            }
            Self::Raw(bytes) => out.extend(bytes),
            Self::Map(pairs) => {
                write_length(out, 0xdf, pairs.len());
                for (key, value) in pairs {
                    key.write(out);
                    value.write(out);
                }
            }
        }
    }
}

fn write_length(out: &mut Vec<u8>, first: u8, len: usize) {
    out.push(first);
    out.extend(u32::try_from(len).unwrap().to_be_bytes());
}

/// An archive of version 1 with `blob` and a table with these bytes.
pub fn archive(blob: &[u8], toc: &[u8]) -> Vec<u8> {
    let mut bytes = b"KPAK\x01\0\0\0".to_vec();
    bytes.extend((64 + blob.len() as u64).to_le_bytes());
    bytes.resize(64, 0);
    bytes.extend(blob);
    bytes.extend(toc);
    bytes
}

/// A blob of these frames.
pub fn framed(frames: &[&[u8]]) -> Vec<u8> {
    let mut blob = u32::try_from(frames.len()).unwrap().to_le_bytes().to_vec();
    for frame in frames {
        blob.extend(u32::try_from(frame.len()).unwrap().to_le_bytes());
        blob.extend(*frame);
    }
    blob
}

pub fn row(ordinal: u64, original_size: u64) -> Value {
    map([
        ("type", text("hsaco")),
        ("ordinal", Value::Number(ordinal)),
        ("original_size", Value::Number(original_size)),
    ])
}

/// The fields of a table with scheme "none" and rows of `lib/x.so` for two targets.
pub fn plain_fields() -> Vec<(Value, Value)> {
    let Value::Map(fields) = map([
        ("format_version", Value::Number(1)),
        ("group_name", text("blas_lib")),
        ("gfx_arch_family", text("gfx90a")),
        ("gfx_arches", texts(&["gfx90a:xnack+", "gfx90a"])),
        ("compression_scheme", text("none")),
        ("blobs", Value::Array(vec![blob(64, 3), blob(67, 4)])),
        (
            "toc",
            map([
                ("lib/x.so#1", map([("gfx90a", row(1, 4))])),
                ("lib/x.so#0", map([("gfx90a", row(0, 3)), ("gfx90a:xnack+", row(1, 4))])),
            ]),
        ),
    ]) else {
        unreachable!()
    };
    fields
}

/// The place of a stored code object.
pub fn blob(offset: u64, size: u64) -> Value {
    map([("offset", Value::Number(offset)), ("size", Value::Number(size))])
}

/// These fields with scheme "zstd-per-kernel" for a blob of `size` bytes.
pub fn framed_fields(size: u64) -> Vec<(Value, Value)> {
    let mut fields = plain_fields();
    set(&mut fields, "compression_scheme", text("zstd-per-kernel"));
    fields.retain(|(key, _)| !is(key, "blobs"));
    fields.push((text("zstd_offset"), Value::Number(64)));
    fields.push((text("zstd_size"), Value::Number(size)));
    fields
}

fn is(key: &Value, name: &str) -> bool {
    matches!(key, Value::Text(text) if text == name.as_bytes())
}

/// Gives the field `name` another value.
pub fn set(fields: &mut [(Value, Value)], name: &str, value: Value) {
    let field = fields.iter_mut().find(|(key, _)| is(key, name));
    field.unwrap_or_else(|| panic!("no field {name}")).1 = value;
}

/// A table with scheme "none" in which the field `name` is changed.
pub fn plain_with(name: &str, value: Value) -> Vec<u8> {
    let mut fields = plain_fields();
    set(&mut fields, name, value);
    plain_of(fields)
}

pub fn plain_of(fields: Vec<(Value, Value)>) -> Vec<u8> {
    archive(b"onefour", &Value::Map(fields).bytes())
}

pub fn framed_of(fields: Vec<(Value, Value)>) -> Vec<u8> {
    archive(&framed(&[b"one", b"four"]), &Value::Map(fields).bytes())
}

/// Bytes of the blob of [`framed_of`].
pub const FRAMED_SIZE: u64 = 4 + 4 + 3 + 4 + 4;
