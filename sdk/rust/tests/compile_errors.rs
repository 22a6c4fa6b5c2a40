//! What a plugin's author reads when a tool is not one: each file under `errors/` gives the one
//! error that stands beside it.

#[test]
fn mistakes_give_one_clear_error() {
    trybuild::TestCases::new().compile_fail("tests/errors/*.rs");
}
