//! A line of the log of another type than a word.

fn handler(context: &spine::Context) -> Result<(), spine::Full> {
    spine::log!(context, "{}", "a text")
}

fn main() {}
