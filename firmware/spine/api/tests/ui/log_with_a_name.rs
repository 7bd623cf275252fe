//! A line of the log whose hole has a name.

fn handler(context: &spine::Context) -> Result<(), spine::Full> {
    spine::log!(context, "a {name}")
}

fn main() {}
