package kernel

import (
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"
)

// hostFunc is one function that the module imports; parameters come on the
// stack and its result replaces the first.
type hostFunc func(in *instance, mem api.Memory, stack []uint64)

// errThrown is a C++ exception. The build has no landing pads, so the panic
// that carries it unwinds the module and comes back as the call's error.
var (
	errThrown  = errors.New("the geometry code threw an exception")
	errAborted = errors.New("the geometry code aborted")
)

// imports are the functions that Manifold 3.5.4 expects, by their letters
// (wasmImports in its manifold.js).
func imports() map[string]hostFunc {
	ignore := func(*instance, api.Memory, []uint64) {}
	return map[string]hostFunc{
		"l": func(*instance, api.Memory, []uint64) { panic(errThrown) },
		"C": func(*instance, api.Memory, []uint64) { panic(errAborted) },
		"D": resizeHeap,

		"j": registerClass,
		"i": registerConstructor,
		"a": registerMethod,
		"c": registerFunction,
		"p": registerInteger,
		"z": ignore, // 64-bit integers: none of our calls passes one
		"y": registerFloat,
		"H": registerVoid,
		"G": ignore, // bool: an i32 on the wire
		"F": ignore, // std::string: a length and its bytes, see takeString
		"w": ignore, // std::wstring
		"E": registerValue,
		"h": registerView,
		"x": ignore, // enumerations: an i32 on the wire
		"d": ignore,
		"r": ignore, // structures: read and written by their layout
		"k": ignore,
		"q": ignore,
		"n": registerValue, // optional values travel like values
		"m": ignore,        // iterators

		"g": createInvoker,
		"f": invokeValue,
		"e": ignore, // a value's destructors: handles end with their call
		"b": ignore,
		"t": ignore,
		"o": valuesEqual,
		"B": getProperty,
		"v": setProperty,
		"A": newObject,
		"s": newString,
		"u": copyToView,
	}
}

// resizeHeap grows the memory by a fifth, or to what is asked if that is more,
// and answers 0 when the limit refuses.
func resizeHeap(_ *instance, mem api.Memory, stack []uint64) {
	wanted, size := stack[0]&0xffffffff, uint64(mem.Size())
	for _, target := range []uint64{max(wanted, size+size/5), wanted} {
		if target <= size {
			stack[0] = 1
			return
		}
		if _, ok := mem.Grow(uint32((target - size + page - 1) / page)); ok {
			stack[0] = 1
			return
		}
	}
	stack[0] = 0
}

// text reads a zero-terminated name of at most 4 kB.
func text(mem api.Memory, at uint64) string {
	var out []byte
	for i := uint32(at); len(out) < 4096; i++ {
		b, ok := mem.ReadByte(i)
		if !ok {
			panic(fmt.Errorf("name at %d lies outside the memory", at))
		}
		if b == 0 {
			break
		}
		out = append(out, b)
	}
	return string(out)
}

func word(mem api.Memory, at uint64) uint32 {
	w, ok := mem.ReadUint32Le(uint32(at))
	if !ok {
		panic(fmt.Errorf("word at %d lies outside the memory", at))
	}
	return w
}

// add makes a table entry callable by a name.
func (in *instance) add(mem api.Memory, name string, letters, index, context uint64) {
	params, results, err := signature(text(mem, letters))
	if err != nil {
		panic(fmt.Errorf("register %s: %w", name, err))
	}
	in.functions[name] = &invoke{index: uint32(index), context: uint32(context), params: params, results: results}
}

func registerClass(in *instance, mem api.Memory, stack []uint64) {
	name := text(mem, stack[10])
	in.classes[uint32(stack[0])] = &class{name: name, destructor: uint32(stack[12])}
	in.add(mem, "~"+name, stack[11], stack[12], 0)
}

func registerConstructor(in *instance, mem api.Memory, stack []uint64) {
	name := fmt.Sprintf("%s/%d", in.className(stack[0]), stack[1]-1)
	in.add(mem, name, stack[3], stack[4], stack[5])
}

func registerMethod(in *instance, mem api.Memory, stack []uint64) {
	name := in.className(stack[0]) + "." + text(mem, stack[1])
	in.add(mem, name, stack[4], stack[5], stack[6])
}

func registerFunction(in *instance, mem api.Memory, stack []uint64) {
	in.add(mem, text(mem, stack[0]), stack[3], stack[4], stack[5])
}

func (in *instance) className(rawType uint64) string {
	c, ok := in.classes[uint32(rawType)]
	if !ok {
		panic(fmt.Errorf("a function belongs to the unregistered class %d", rawType))
	}
	return c.name
}
