package kernel

import (
	"fmt"
	"math"

	"github.com/tetratelabs/wazero/api"
)

// Values are the objects, arrays and numbers that the module hands over by
// handle when a mesh crosses its border. Handles end with the call that made
// them, so counting references is not needed.

// The handles that the module knows by itself; those of other values follow.
const (
	undefinedHandle = 2
	firstHandle     = 10
)

// undefined is what a missing property reads as.
type undefined struct{}

// object is a value with named properties.
type object map[string]any

// kind is the element type of a typed array, as embind counts them.
type kind uint32

const (
	int32Kind   kind = 4
	uint32Kind  kind = 5
	float32Kind kind = 6
	float64Kind kind = 7
)

// width is the size of one element in bytes.
func (k kind) width() uint32 {
	return [...]uint32{1, 1, 2, 2, 4, 4, 4, 8, 8, 8}[min(k, 9)]
}

// array is a copy of a typed array.
type array struct {
	kind  kind
	bytes []byte
}

// view is a typed array inside the module's memory.
type view struct {
	kind   kind
	at     uint32
	length uint32
}

// values is the table of handles.
type values struct{ held []any }

func (v *values) reset() { v.held = v.held[:0] }

func (v *values) put(x any) uint64 {
	if _, none := x.(undefined); none {
		return undefinedHandle
	}
	v.held = append(v.held, x)
	return firstHandle + 2*uint64(len(v.held)-1)
}

func (v *values) get(handle uint64) any {
	switch h := uint32(handle); {
	case h == undefinedHandle || h == 4:
		return undefined{}
	case h == 6:
		return 1.0
	case h == 8:
		return 0.0
	case h >= firstHandle && int(h-firstHandle)/2 < len(v.held):
		return v.held[(h-firstHandle)/2]
	}
	panic(fmt.Errorf("the geometry code uses the unknown handle %d", handle))
}

// wire says how a registered type looks in an argument slot.
type wire struct {
	form   form
	width  uint32
	signed bool
	kind   kind
}

type form int

const (
	voidForm form = iota
	integerForm
	floatForm
	valueForm
	viewForm
)

func registerVoid(in *instance, _ api.Memory, stack []uint64) {
	in.types[uint32(stack[0])] = wire{form: voidForm}
}

func registerInteger(in *instance, _ api.Memory, stack []uint64) {
	in.types[uint32(stack[0])] = wire{form: integerForm, width: uint32(stack[2]), signed: uint32(stack[3]) != 0}
}

func registerFloat(in *instance, _ api.Memory, stack []uint64) {
	in.types[uint32(stack[0])] = wire{form: floatForm, width: uint32(stack[2])}
}

func registerValue(in *instance, _ api.Memory, stack []uint64) {
	in.types[uint32(stack[0])] = wire{form: valueForm}
}

func registerView(in *instance, _ api.Memory, stack []uint64) {
	in.types[uint32(stack[0])] = wire{form: viewForm, kind: kind(stack[1])}
}

// caller is a way to call a method or to convert, with the types it takes.
type caller struct {
	cast   bool
	result wire
	params []wire
}

// createInvoker remembers the types of one kind of call: 1 is a method, 3 a
// conversion; the first type is the result's.
func createInvoker(in *instance, mem api.Memory, stack []uint64) {
	mode := stack[2]
	if mode != 1 && mode != 3 {
		panic(fmt.Errorf("the geometry code asks for an unknown kind of call, %d", mode))
	}
	c := caller{cast: mode == 3}
	for i := range stack[0] {
		raw := word(mem, stack[1]+4*i)
		t, ok := in.types[raw]
		if !ok {
			panic(fmt.Errorf("a call passes a value of the unregistered type %d", raw))
		}
		if i == 0 {
			c.result = t
		} else {
			c.params = append(c.params, t)
		}
	}
	in.callers = append(in.callers, c)
	stack[0] = uint64(len(in.callers) - 1)
}

// argument reads one argument slot.
func (in *instance) argument(mem api.Memory, t wire, at uint64) any {
	switch t.form {
	case integerForm:
		w := word(mem, at)
		switch shift := 32 - 8*min(t.width, 4); {
		case t.signed:
			return float64(int32(w<<shift) >> shift)
		default:
			return float64(w << shift >> shift)
		}
	case floatForm:
		if t.width == 4 {
			return float64(math.Float32frombits(word(mem, at)))
		}
		return math.Float64frombits(uint64(word(mem, at)) | uint64(word(mem, at+4))<<32)
	case valueForm:
		return in.values.get(uint64(word(mem, at)))
	case viewForm:
		return view{kind: t.kind, length: word(mem, at), at: word(mem, at+4)}
	}
	return undefined{}
}

// invokeValue converts a value, or calls slice or set of a typed array: the
// only methods that the module uses.
func invokeValue(in *instance, mem api.Memory, stack []uint64) {
	c := in.callers[uint32(stack[0])]
	args := make([]any, len(c.params))
	for i, t := range c.params {
		args[i] = in.argument(mem, t, stack[4]+8*uint64(i))
	}
	var out any = undefined{}
	switch {
	case c.cast && len(args) == 1:
		out = args[0]
	case !c.cast:
		self, name := in.values.get(stack[1]), text(mem, stack[2])
		v, ok := self.(view)
		if !ok || name != "slice" {
			panic(fmt.Errorf("the geometry code calls the unknown method %q", name))
		}
		out = v.copy(mem)
	}
	switch c.result.form {
	case valueForm:
		stack[0] = api.EncodeF64(float64(in.values.put(out)))
	case integerForm, floatForm:
		number, _ := out.(float64)
		stack[0] = api.EncodeF64(number)
	default:
		stack[0] = 0
	}
}

func (v view) copy(mem api.Memory) array {
	inside, ok := mem.Read(v.at, v.length*v.kind.width())
	if !ok {
		panic(fmt.Errorf("array of %d elements at %d lies outside the memory", v.length, v.at))
	}
	return array{kind: v.kind, bytes: append([]byte(nil), inside...)}
}

func valuesEqual(in *instance, _ api.Memory, stack []uint64) {
	_, a := in.values.get(stack[0]).(undefined)
	_, b := in.values.get(stack[1]).(undefined)
	equal := uint32(stack[0]) == uint32(stack[1]) || a && b
	stack[0] = 0
	if equal {
		stack[0] = 1
	}
}

func getProperty(in *instance, _ api.Memory, stack []uint64) {
	key, _ := in.values.get(stack[1]).(string)
	var out any = undefined{}
	switch v := in.values.get(stack[0]).(type) {
	case object:
		if found, ok := v[key]; ok {
			out = found
		}
	case array:
		if key == "length" {
			out = float64(len(v.bytes)) / float64(v.kind.width())
		}
	}
	stack[0] = in.values.put(out)
}

func setProperty(in *instance, _ api.Memory, stack []uint64) {
	o, ok := in.values.get(stack[0]).(object)
	key, named := in.values.get(stack[1]).(string)
	if !ok || !named {
		panic(fmt.Errorf("the geometry code sets a property of a value that has none"))
	}
	o[key] = in.values.get(stack[2])
}

func newObject(in *instance, _ api.Memory, stack []uint64) { stack[0] = in.values.put(object{}) }

func newString(in *instance, mem api.Memory, stack []uint64) {
	stack[0] = in.values.put(text(mem, stack[0]))
}

// copyToView fills a typed array of the module from one of ours.
func copyToView(in *instance, mem api.Memory, stack []uint64) {
	to, ok := in.values.get(stack[0]).(view)
	from, also := in.values.get(stack[1]).(array)
	if !ok || !also || to.kind != from.kind || uint64(len(from.bytes)) > uint64(to.length)*uint64(to.kind.width()) {
		panic(fmt.Errorf("the geometry code copies between arrays that do not fit"))
	}
	if !mem.Write(to.at, from.bytes) {
		panic(fmt.Errorf("array at %d lies outside the memory", to.at))
	}
}
