//! Components that no compiler makes: a sound one with more in it, and some that are nothing but an
//! attack on whoever loads them.

use wasm_encoder::{
    CodeSection, ComponentSection, CustomSection, Function, FunctionSection, InstanceSection,
    MemorySection, MemoryType, Module, ModuleSection, RefType, StartSection, TableSection,
    TableType, TypeSection, ValType,
};
use wasmparser::{Parser, Payload};

/// The component with a core module besides, which is instantiated so many times.
pub fn with_module(component: &[u8], module: &Module, instances: usize) -> Vec<u8> {
    let index = core_modules(component);
    let mut made = component.to_vec();
    ModuleSection(module).append_to_component(&mut made);
    let mut section = InstanceSection::new();
    for _ in 0..instances {
        section.instantiate(index, std::iter::empty::<(&str, wasm_encoder::ModuleArg)>());
    }
    section.append_to_component(&mut made);
    made
}

/// The component with a custom section besides.
pub fn with_section(component: &[u8], name: &str, data: &[u8]) -> Vec<u8> {
    let mut made = component.to_vec();
    CustomSection { name: name.into(), data: data.into() }.append_to_component(&mut made);
    made
}

/// Core modules of the component itself.
fn core_modules(component: &[u8]) -> u32 {
    let mut depth = 0;
    let mut modules = 0;
    for payload in Parser::new(0).parse_all(component) {
        let Ok(payload) = payload else { panic!("the component to add to is none") };
        match payload {
            Payload::ModuleSection { .. } => {
                modules += u32::from(depth == 0);
                depth += 1;
            }
            Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            _ => {}
        }
    }
    modules
}

/// A core module with nothing in it.
pub fn empty() -> Module {
    Module::new()
}

/// A core module with a memory of so many pages.
pub fn memory(pages: u64) -> Module {
    let mut module = Module::new();
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: pages,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    module.section(&memories);
    module
}

/// A core module with a table of so many elements.
pub fn table(elements: u64) -> Module {
    let mut module = Module::new();
    let mut tables = TableSection::new();
    tables.table(TableType {
        element_type: RefType::FUNCREF,
        table64: false,
        minimum: elements,
        maximum: None,
        shared: false,
    });
    module.section(&tables);
    module
}

/// A core module that computes without end as soon as it is instantiated.
pub fn start_loop() -> Module {
    let mut spin = Function::new([]);
    spin.instructions().loop_(wasm_encoder::BlockType::Empty).br(0).end().end();
    with_functions([spin], /* start */ true)
}

/// A core module with so many small functions.
pub fn many_functions(count: usize) -> Module {
    let function = || {
        let mut function = Function::new([(8, ValType::I64)]);
        let mut code = function.instructions();
        for local in 0..8 {
            code.local_get(local).i64_const(7).i64_mul().local_set((local + 3) % 8);
        }
        code.end();
        function
    };
    with_functions(std::iter::repeat_with(function).take(count), /* start */ false)
}

/// A core module with one function of so many instructions, all of whose values live to its end.
pub fn huge_function(instructions: usize) -> Module {
    const LOCALS: u32 = 2_000;
    let mut function = Function::new([(LOCALS, ValType::I64)]);
    let mut code = function.instructions();
    let mut at = 0_u32;
    for number in 0..instructions / 6 {
        let other = at.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        code.local_get(at % LOCALS).local_get(other % LOCALS).i64_add();
        code.i64_const(number as i64).i64_xor().local_set(other / 7 % LOCALS);
        if number % 64 == 0 {
            code.block(wasm_encoder::BlockType::Empty);
            code.local_get(at % LOCALS).i64_eqz().br_if(0).end();
        }
        at = other;
    }
    code.end();
    with_functions([function], /* start */ false)
}

fn with_functions(functions: impl IntoIterator<Item = Function>, start: bool) -> Module {
    let mut module = Module::new();
    let mut types = TypeSection::new();
    types.ty().function([], []);
    let (mut declared, mut code) = (FunctionSection::new(), CodeSection::new());
    for function in functions {
        declared.function(0);
        code.function(&function);
    }
    module.section(&types).section(&declared);
    if start {
        module.section(&StartSection { function_index: 0 });
    }
    module.section(&code);
    module
}

/// A component in a component in a component, so many times.
pub fn nested(levels: usize) -> Vec<u8> {
    let mut bytes = wasm_encoder::Component::HEADER.to_vec();
    for _ in 0..levels {
        let mut outer = wasm_encoder::Component::HEADER.to_vec();
        // The bytes of the one inside, as a section of the one outside.
        outer.push(4);
        length(&mut outer, bytes.len());
        outer.extend_from_slice(&bytes);
        bytes = outer;
    }
    bytes
}

fn length(bytes: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
}

/// A component with a type that is twice the one before it, so many times.
pub fn huge_type(doublings: u32) -> Vec<u8> {
    use wasm_encoder::{ComponentTypeSection, ComponentValType, PrimitiveValType};
    let mut types = ComponentTypeSection::new();
    let mut one = ComponentValType::Primitive(PrimitiveValType::U8);
    for index in 0..doublings {
        types.defined_type().tuple([one, one]);
        one = ComponentValType::Type(index);
    }
    let mut component = wasm_encoder::Component::new();
    component.section(&types);
    component.finish()
}

/// A component with so many types.
pub fn many_types(count: usize) -> Vec<u8> {
    let mut types = wasm_encoder::ComponentTypeSection::new();
    for _ in 0..count {
        types.defined_type().primitive(wasm_encoder::PrimitiveValType::U8);
    }
    let mut component = wasm_encoder::Component::new();
    component.section(&types);
    component.finish()
}

/// A component that holds another as a component of its own, and nothing else.
pub fn wrapped(component: &[u8]) -> Vec<u8> {
    let mut bytes = wasm_encoder::Component::HEADER.to_vec();
    bytes.push(4);
    length(&mut bytes, component.len());
    bytes.extend_from_slice(component);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_parses() {
        let sound = crate::NOOP.bytes;
        for made in [
            with_module(sound, &empty(), 3),
            with_module(sound, &memory(1), 1),
            with_module(sound, &start_loop(), 1),
            with_module(sound, &many_functions(10), 1),
            with_module(sound, &huge_function(1_000), 1),
            with_section(sound, "x", b"y"),
            nested(10),
            huge_type(10),
            many_types(10),
            wrapped(sound),
        ] {
            for payload in Parser::new(0).parse_all(&made) {
                payload.unwrap();
            }
        }
        assert_eq!(core_modules(&with_module(sound, &empty(), 1)), core_modules(sound) + 1);
    }
}
