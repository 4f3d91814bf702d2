package wire_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"swarmdeck/drivers/host/wire"
	"swarmdeck/expect"
)

type pipe struct {
	io.Reader
	io.Writer
}

func frame(body string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestFramesArriveAsTheyWereSent(t *testing.T) {
	var b bytes.Buffer
	c := wire.New(&b, wire.MaxFromHost)
	sent := []wire.FromHost{
		{Opened: &wire.Taken{}},
		{Event: &wire.Event{Seq: 1, Kind: wire.Exited, Out: [2]int64{3, 4}, Lacks: []string{"x"}}},
		{Data: &wire.Data{At: 7, Bytes: []byte("\xff\x00a")}},
	}
	for _, f := range sent {
		expect.No(t, c.Send(f))
	}
	var f wire.FromHost
	if err := c.Read(&f); err != nil || f.Opened == nil {
		t.Error(f, err) // an empty member is one all the same
	}
	f = wire.FromHost{}
	err := c.Read(&f)
	expect.True(t, err == nil && f.Event != nil && f.Event.Out == [2]int64{3, 4}, "%v %v", f, err)
	f = wire.FromHost{}
	err = c.Read(&f)
	expect.True(t, err == nil && string(f.Data.Bytes) == "\xff\x00a", "%v %v", f, err)
}

func TestAFrameThatCantBeOneIsRefused(t *testing.T) {
	for name, data := range map[string][]byte{
		"too long": frame(strings.Repeat(" ", 300<<10)), "empty": frame(""), "cut": frame(`{"ack":{}}`)[:8], "no object": frame(`1`),
		"another member": frame(`{"who":"root"}`), "garbage": frame("\xff"),
	} {
		var f wire.FromHost
		expect.Fails(t, wire.New(pipe{bytes.NewReader(data), io.Discard}, wire.MaxFromHost).Read(&f), name)
	}
	var f wire.FromHost
	expect.Err(t, wire.New(pipe{bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff}), io.Discard}, wire.MaxFromHost).Read(&f), wire.ErrFrame)
}

// What a host says is refused or within its bounds, and has no words that a
// terminal would obey.
func FuzzFromHost(f *testing.F) {
	f.Add([]byte(`{"event":{"seq":1,"kind":"exited","code":3,"signal":9,"error":"x\u001b[2J"}}`))
	f.Add([]byte(`{"data":{"stream":1,"at":9,"bytes":"aGk="}}`))
	f.Add([]byte(`{"ack":{"items":3,"wrote":12}}`))
	f.Add([]byte(`{"opened":{"items":1,"wrote":-1,"error":"no"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var m wire.FromHost
		if wire.New(pipe{bytes.NewReader(frame(string(body))), io.Discard}, wire.MaxFromHost).Read(&m) != nil {
			return
		}
		if e := m.Event; e != nil && e.Check() == nil {
			if e.Code < 0 || e.Code > 255 || e.Signal < 0 || e.Signal > 64 || len(e.Error) > 1024 || strings.ContainsAny(e.Error, "\x1b\n\x00") {
				t.Fatal(e)
			}
		}
		if d := m.Data; d != nil && d.Check() == nil && (len(d.Bytes) == 0 || len(d.Bytes) > wire.Chunk || d.At < 0) {
			t.Fatal(d)
		}
	})
}

// What comes first on a link, from either side.
func FuzzControl(f *testing.F) {
	f.Add([]byte(`{"hello":{"version":1,"engine":"A","attempt":1,"lease_ms":60000,"runs":["B"]}}`))
	f.Add([]byte(`{"welcome":{"version":1,"digest":"aa","boot":"C","runs":[],"lacks":["landlock"]}}`))
	f.Add([]byte(`{"end":{"remove":true}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var m wire.Control
		if wire.New(pipe{bytes.NewReader(frame(string(body))), io.Discard}, wire.MaxFromEngine).ReadAny(&m) != nil {
			return
		}
		if h := m.Hello; h != nil && h.Check() == nil && (h.LeaseMS < 1000 || len(h.Engine) > wire.MaxID || strings.ContainsAny(h.Engine, "/\x00 ")) {
			t.Fatal(h)
		}
		if w := m.Welcome; w != nil {
			_ = w.Check()
		}
	})
}

func TestWhatIsKeptOfARunIsBounded(t *testing.T) {
	well := func() *wire.Kept { return &wire.Kept{Run: "r", Agent: "a", Stdout: make([]byte, wire.MaxKept)} }
	expect.No(t, well().Check())
	for name, spoil := range map[string]func(*wire.Kept){
		"no run": func(k *wire.Kept) { k.Run = "" }, "an agent's name": func(k *wire.Kept) { k.Agent = "../a" },
		"output": func(k *wire.Kept) { k.Stdout = make([]byte, wire.MaxKept+1) }, "tasks": func(k *wire.Kept) { k.Tasks = make([]string, 65) },
		"a status": func(k *wire.Kept) { k.Code = 256 }, "a time": func(k *wire.Kept) { k.EndedMS = -1 },
	} {
		k := well()
		spoil(k)
		expect.True(t, k.Check() != nil, "%s: taken", name)
	}
	expect.True(t, (&wire.Item{Kind: wire.Serve, Task: strings.Repeat("t", 65)}).Check() != nil, "a long task is taken")
}
