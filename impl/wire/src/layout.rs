//! Macros that declare layouts: records of fields in order, enums of one byte.

/// Declares records whose bytes are those of their fields in order.
macro_rules! record {
    () => {};
    (
        $(#[$meta:meta])*
        pub struct $name:ident<$lifetime:lifetime> {
            $($(#[$doc:meta])* $field:ident: $type:ty),* $(,)?
        }
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug)]
        #[allow(missing_docs, reason = "the fields are named as in the dialect's tables")]
        pub struct $name<$lifetime> {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl<$lifetime> $crate::primitives::Wire<$lifetime> for $name<$lifetime> {
            $crate::layout::record_body!($name, $lifetime, $($field: $type),*);
        }

        #[cfg(test)]
        impl<$lifetime> $crate::generate::Generate<$lifetime> for $name<$lifetime> {
            fn generate(source: &mut $crate::generate::Source<$lifetime>) -> Self {
                $name { $($field: source.generate(),)* }
            }
        }

        $crate::layout::record! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* $field:ident: $type:ty),* $(,)?
        }
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug)]
        #[allow(missing_docs, reason = "the fields are named as in the dialect's tables")]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl<'r> $crate::primitives::Wire<'r> for $name {
            $crate::layout::record_body!($name, 'r, $($field: $type),*);
        }

        #[cfg(test)]
        #[allow(unused_variables, reason = "some records are empty")]
        impl<'r> $crate::generate::Generate<'r> for $name {
            fn generate(source: &mut $crate::generate::Source<'r>) -> Self {
                $name { $($field: source.generate(),)* }
            }
        }

        $crate::layout::record! { $($rest)* }
    };
}

/// The body of a record's `Wire`: the fields in order.
macro_rules! record_body {
    ($name:ident, $lifetime:lifetime, $($field:ident: $type:ty),*) => {
        const BYTES_MIN: usize =
            0 $(+ <$type as $crate::primitives::Wire<$lifetime>>::BYTES_MIN)*;

        #[allow(unused_variables, reason = "some records are empty")]
        fn read(
            reader: &mut $crate::primitives::Reader<$lifetime>,
        ) -> Result<Self, $crate::primitives::WireError> {
            Ok($name {
                $($field: <$type as $crate::primitives::Wire<$lifetime>>::read(reader)?,)*
            })
        }

        #[allow(unused_variables, reason = "some records are empty")]
        fn write(&self, out: &mut Vec<u8>) {
            $(<$type as $crate::primitives::Wire<$lifetime>>::write(&self.$field, out);)*
        }
    };
}

/// Declares an enum of one byte; other bytes are malformed.
macro_rules! wire_enum {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident: $what:literal {
            $($(#[$doc:meta])* $variant:ident = $value:literal,)*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $variant = $value,)*
        }

        impl $name {
            /// The value with this number.
            pub const fn from_u8(value: u8) -> Option<$name> {
                match value {
                    $($value => Some($name::$variant),)*
                    _ => None,
                }
            }
        }

        impl<'r> $crate::primitives::Wire<'r> for $name {
            const BYTES_MIN: usize = 1;

            fn read(
                reader: &mut $crate::primitives::Reader<'r>,
            ) -> Result<Self, $crate::primitives::WireError> {
                let kind = <u8 as $crate::primitives::Wire<'r>>::read(reader)?;
                $name::from_u8(kind).ok_or($crate::primitives::WireError::Kind {
                    field: $what,
                    kind,
                })
            }

            fn write(&self, out: &mut Vec<u8>) {
                out.push(*self as u8);
            }
        }

        #[cfg(test)]
        impl<'r> $crate::generate::Generate<'r> for $name {
            fn generate(source: &mut $crate::generate::Source<'r>) -> Self {
                let all = [$($name::$variant,)*];
                all[source.below(all.len())]
            }
        }
    )*};
}
pub(crate) use {record, record_body, wire_enum};
