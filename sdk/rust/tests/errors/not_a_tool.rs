fn noop() -> String {
    String::new()
}

belljar_sdk::plugin!(noop);

fn main() {}
