//! A line of the log without a word for its hole.

fn handler(context: &spine::Context) -> Result<(), spine::Full> {
    spine::log!(context, "{} and {}", 1)
}

fn main() {}
