package env_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/embedded"
	"swarmdeck/drivers/cad/env"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestMessagesThatAreNone(t *testing.T) {
	c := start(t)
	before := c.state("main")
	for _, tt := range []struct {
		line string
		code env.Code
		id   string
	}{
		{`{`, -32700, "null"},
		{`nonsense`, -32700, "null"},
		{`{"jsonrpc":"2.0","id":1,"method":"system.ping"}}`, -32700, "null"},
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"system.ping"}`, -32700, "null"},
		{`{"jsonrpc":"2.0","id":1,"method":"entity.create_point","params":{"x":NaN,"y":0}}`, -32700, "null"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32700, "null"},
		{`1`, -32600, "null"},
		{`"x"`, -32600, "null"},
		{`[]`, -32600, "null"},
		{`{}`, -32600, "null"},
		{`{"id":7,"method":"system.ping"}`, -32600, "7"},
		{`{"jsonrpc":"1.0","id":7,"method":"system.ping"}`, -32600, "7"},
		{`{"jsonrpc":"2.0","id":{},"method":"system.ping"}`, -32600, "null"},
		{`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"system.ping"}`, -32600, "null"},
		{`{"jsonrpc":"2.0","id":"a","method":5}`, -32600, `"a"`},
		{`{"jsonrpc":"2.0","id":"a"}`, -32600, `"a"`},
		{`{"jsonrpc":"2.0","id":"a","method":"entity.list","params":5}`, -32600, `"a"`},
		{`{"jsonrpc":"2.0","id":"a","method":"entity.list","params":[1,2]}`, -32602, `"a"`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"no.such"}`, -32601, "1.5"},
		{`{"jsonrpc":"2.0","id":null,"method":"solid.loft"}`, -32601, "null"},
	} {
		c.send(tt.line)
		r := c.receive()
		expect.True(t, r.Error != nil && r.Error.Code == tt.code && string(r.ID) == tt.id,
			"%.80s: %+v, id %s; want %d, id %s", tt.line, r.Error, r.ID, tt.code, tt.id)
	}
	after := c.state("main")
	expect.True(t, after == before, "something changed:\n%s\n%s", before, after)
	c.send("")
	c.send("   ")
	c.send(strings.Repeat(" ", 1000))
	c.send(strings.Repeat(" ", 1000) + `{"jsonrpc":"2.0","id":"far","method":"system.ping"}`)
	r := c.receive()
	expect.True(t, string(r.ID) == `"far"`, "a request after many spaces: %+v", r)
	c.do("system.ping", "{}")
}

func TestALineThatIsTooLongIsSkipped(t *testing.T) {
	c := start(t)
	go func() {
		part := strings.Repeat("x", 1<<20)
		for range env.MaxLine>>20 + 1 {
			io.WriteString(c.in, part)
		}
		io.WriteString(c.in, "\n")
	}()
	r := c.receive()
	expect.True(t, r.Error != nil && r.Error.Code == env.ParseError, "%+v", r)
	c.do("system.ping", "{}")
}

func TestNotificationsGetNoAnswer(t *testing.T) {
	c := start(t)
	c.send(`{"jsonrpc":"2.0","method":"entity.create_point","params":{"entity_id":"p","coordinates":[1,2]}}`)
	c.send(`{"jsonrpc":"2.0","method":"no.such.method"}`)
	c.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":99}}`)
	expect.Row(t, c.do("entity.query", `{"entity_id":"p"}`), "entity_type", "point")
}

func TestABatchIsAnsweredAsOne(t *testing.T) {
	c := start(t)
	c.send(`[{"jsonrpc":"2.0","id":"a","method":"entity.create_point","params":{"entity_id":"p","coordinates":[1,2]}},` +
		`{"jsonrpc":"2.0","method":"entity.create_point","params":{"entity_id":"q","coordinates":[4,6]}},5,` +
		`{"jsonrpc":"2.0","id":"b","method":"measure.distance","params":{"entity_ids":["p","q"]}}]`)
	var all []response
	expect.No(t, core.Decode([]byte(c.line()), &all))
	expect.True(t, len(all) == 3 && all[1].Error.Code == env.InvalidRequest && all[2].Result.Data["distance"] == 5.0, "%+v", all)
	c.send(`[{"jsonrpc":"2.0","method":"entity.list"}]`) // no answer at all
	c.do("system.ping", "{}")
}

func TestHelloTellsWhatThereIs(t *testing.T) {
	c := start(t)
	h := c.do("system.hello", "{}")
	expect.True(t, h["kernel"] == "embedded" && h["exact"] == false && h["tolerance"] == 0.01 && len(h["methods"].([]any)) >= 40, "%v", h)
	expect.True(t, h["aliases"].(map[string]any)["solid.boolean.union"] == "solid.boolean", "%v", h["aliases"])
	for _, name := range h["methods"].([]any) {
		if r := c.try(name.(string), `{"no_such_param":1}`); r.Error == nil || r.Error.Code != env.InvalidParameter && r.Error.Code != env.UnsupportedByKernel {
			t.Errorf("%s takes a parameter that is none: %+v", name, r)
		}
	}
}

func TestAnswersComeInOrderAndAllOfThem(t *testing.T) {
	c := start(t)
	const n = 300
	go func() {
		for i := range n {
			io.WriteString(c.in, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"entity.create_point","params":{"coordinates":[%d,0]}}`+"\n", i, i))
		}
		c.in.Close() // what was read is answered all the same
	}()
	for i := range n {
		r := c.receive()
		expect.Must(t, string(r.ID) == fmt.Sprint(i) && r.Error == nil, "%d: %+v", i, r)
	}
}

// slow is a kernel whose every Build waits.
type slow struct {
	env.Kernel
	wait   func(ctx context.Context) error
	closed chan struct{}
}

func (s slow) Build(ctx context.Context, shape model.Shape, blob []byte) (model.Facts, error) {
	if err := s.wait(ctx); err != nil {
		return model.Facts{}, err
	}
	return s.Kernel.Build(ctx, shape, blob)
}

func (s slow) Close() error {
	close(s.closed)
	return s.Kernel.Close()
}

// slowFirst makes the first kernel slow, and those after it real.
func slowFirst(wait func(ctx context.Context) error) (change func(*env.Options), closed chan struct{}) {
	closed = make(chan struct{})
	opened := 0
	return func(o *env.Options) {
		open := o.Open
		o.Open = func(ctx context.Context) (env.Kernel, error) {
			k, err := open(ctx)
			if opened++; opened == 1 {
				return slow{k, wait, closed}, err
			}
			return k, err
		}
	}, closed
}

const aBox = `{"primitive_type":"box","width":1,"depth":1,"height":1}`

func TestADeadlineGivesTheKernelUp(t *testing.T) {
	free := make(chan struct{})
	change, closed := slowFirst(func(context.Context) error { <-free; return nil }) // can't be interrupted
	c := start(t, change)
	e := c.fails(env.Timeout, "deadline_ms", "solid.primitive", `{"deadline_ms":20,`+aBox[1:])
	expect.True(t, e.Data.Recoverable, "%v", e)
	expect.Row(t, c.do("entity.list", "{}"), "total_count", 0.0)
	c.do("solid.primitive", aBox) // by another kernel
	select {
	case <-closed:
		t.Error("the kernel was closed while it worked")
	default:
	}
	close(free)
	<-closed
}

// deaf is a kernel that works on when its caller has gone.
type deaf struct{ slow }

func (d deaf) Build(ctx context.Context, shape model.Shape, blob []byte) (model.Facts, error) {
	return d.slow.Build(context.WithoutCancel(ctx), shape, blob)
}

func TestAnAbandonedCallLooksUpNoFurtherRecipe(t *testing.T) {
	lost, free, closed := false, make(chan struct{}), make(chan struct{})
	crash := func(context.Context) error {
		if lost {
			return errors.New("crash")
		}
		return nil
	}
	begun, opened := make(chan struct{}, 8), 0
	wait := func(context.Context) error { begun <- struct{}{}; <-free; return nil }
	c := start(t, func(o *env.Options) {
		open := o.Open
		o.Open = func(ctx context.Context) (env.Kernel, error) {
			k, err := open(ctx)
			switch opened++; opened {
			case 1:
				return slow{k, crash, make(chan struct{})}, err
			case 2:
				return deaf{slow{k, wait, closed}}, err
			}
			return k, err
		}
	})
	c.box("a", [3]float64{}, [3]float64{1, 2, 3})
	c.do("solid.transform", `{"entity_id":"a","translate":[0,0,5]}`)
	lost = true
	c.try("solid.primitive", aBox)
	c.send(`{"jsonrpc":"2.0","id":"mass","method":"measure.mass","params":{"entity_id":"a"}}`)
	<-begun // with the box, of which the other is made
	c.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"mass"}}`)
	r := c.receive()
	expect.True(t, string(r.ID) == `"mass"` && r.Error != nil, "%+v", r)
	c.do("solid.primitive", aBox) // changes what the call would read
	close(free)
	<-closed
	expect.Is(t, len(begun), 0, "the abandoned call built")
}

func TestALostKernelIsOpenedAnew(t *testing.T) {
	lost := false
	change, closed := slowFirst(func(context.Context) error {
		if lost {
			return errors.New("crash")
		}
		return nil
	})
	c := start(t, change)
	c.box("a", [3]float64{}, [3]float64{2, 2, 2})
	c.do("solid.boolean", `{"operation":"union","entity_ids":["a",`+fmt.Sprintf("%q", c.do("solid.primitive", aBox)["entity_id"])+`],"entity_id":"b"}`)
	lost = true
	e := c.try("solid.primitive", `{"primitive_type":"sphere","radius":1}`).Error
	expect.True(t, e != nil && e.Data.Name == env.KernelLost && e.Data.Recoverable, "%+v", e)
	<-closed
	c.near("mass", c.do("measure.mass", `{"entity_id":"b"}`)["volume"], 8, 1e-6) // built again from its recipe
}

func TestAKernelThatStartsSlowlyIsThereForTheNext(t *testing.T) {
	change, closed := slowFirst(func(context.Context) error { return errors.New("crash") })
	opened, free := 0, make(chan struct{})
	c := start(t, change, func(o *env.Options) {
		open := o.Open
		o.Open = func(ctx context.Context) (env.Kernel, error) {
			if opened++; opened == 2 {
				select {
				case <-free:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return open(ctx)
		}
	})
	c.try("solid.primitive", aBox)
	<-closed
	for range 3 {
		c.fails(env.Timeout, "deadline_ms", "solid.primitive", `{"deadline_ms":20,`+aBox[1:])
	}
	c.send(`{"jsonrpc":"2.0","id":"long","method":"solid.primitive","params":` + aBox + `}`)
	c.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"long"}}`)
	r := c.receive()
	expect.True(t, r.Error != nil && r.Error.Code == env.OperationInvalid && strings.Contains(r.Error.Message, "cancelled"), "%+v", r)
	close(free)
	c.do("solid.primitive", aBox)
	expect.Is(t, opened, 2, "kernels were opened")
}

func TestCancelAndProgress(t *testing.T) {
	begun := make(chan struct{}, 8)
	change, _ := slowFirst(func(ctx context.Context) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	c := start(t, change)
	c.send(`{"jsonrpc":"2.0","id":"long","method":"solid.primitive","params":` + aBox + `}`)
	c.send(`{"jsonrpc":"2.0","id":"next","method":"solid.primitive","params":` + aBox + `}`)
	c.send(`{"jsonrpc":"2.0","id":"odd","method":"no.such"}`)
	<-begun
	for len(c.notes) == 0 { // until there is progress to tell
		var note response
		err := core.Decode([]byte(c.line()), &note)
		expect.Must(t, err == nil && note.Method != "", "%+v, %v", note, err)
		c.notes = append(c.notes, note.Params)
	}
	expect.Row(t, c.do("system.cancel", `{"id":"next"}`), "cancelled", true)
	expect.Row(t, c.do("system.cancel", `{"id":"odd"}`), "cancelled", true)
	expect.Row(t, c.do("system.cancel", `{"id":"none"}`), "cancelled", false)
	c.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"long"}}`)
	for _, id := range []string{`"long"`, `"next"`} {
		if r := c.receive(); string(r.ID) != id || r.Error == nil || r.Error.Code != env.OperationInvalid || !strings.Contains(r.Error.Message, "cancelled") {
			t.Errorf("%s: %+v", id, r)
		}
	}
	r := c.receive()
	expect.True(t, string(r.ID) == `"odd"` && r.Error != nil, "odd: %+v", r)
	for _, id := range []string{"long", "next", "odd"} { // a cancel is for one request, not for its id
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"entity.list"}`, id))
		r := c.receive()
		expect.True(t, r.Error == nil, "%s can't be used again: %+v", id, r.Error)
	}
	expect.True(t, len(c.notes) != 0 && strings.Contains(string(c.notes[0]), `"id":"long"`), "no progress: %s", c.notes)
	expect.Row(t, c.do("entity.list", "{}"), "total_count", 0.0)
}

func TestShutdownAnswersWhatWasAskedBefore(t *testing.T) {
	c := start(t)
	for i := range 20 {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"solid.primitive","params":%s}`, i, aBox))
	}
	c.send(`{"jsonrpc":"2.0","id":"end","method":"system.shutdown"}`)
	answered, ended := 0, false
	for range 21 {
		if r := c.receive(); string(r.ID) == `"end"` {
			ended = true
		} else if r.Error == nil {
			answered++
		}
	}
	expect.True(t, answered == 20 && ended, "%v %v", answered, ended)
	expect.Err(t, expect.Fault(c.out.ReadString('\n')), io.EOF, "the environment goes on")
}

func TestAKernelOutOfMemoryRefusesAndGoesOn(t *testing.T) {
	small := embedded.New(embedded.Options{Memory: 24 << 20})
	t.Cleanup(func() { small.Close() })
	c := start(t, func(o *env.Options) { o.Open = small.Open })
	c.do("solid.primitive", `{"entity_id":"ball","primitive_type":"sphere","radius":20}`)
	before := c.state("main")
	c.fails(env.InsufficientMemory, "", "solid.pattern", `{"base_entity_id":"ball","direction":[1,0,0],"spacing":3,"count":200}`)
	expect.Is(t, c.state("main"), before, "something changed")
	c.do("solid.transform", `{"entity_id":"ball","translate":[1,0,0]}`)
	expect.Row(t, c.do("agent.metrics", `{}`), "kernels_lost", 1.0)
}
