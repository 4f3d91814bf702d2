package egress

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// greetingOf is what Go's client says to a server of that name.
func greetingOf(t testing.TB, name string) []byte {
	t.Helper()
	client, server := net.Pipe()
	go func() {
		_ = tls.Client(client, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		client.Close()
	}()
	defer server.Close()
	buf := make([]byte, 16<<10)
	n := expect.Of(server.Read(buf))(t)
	return buf[:n]
}

// records splits a greeting into records of n bytes.
func records(greeting []byte, n int) []byte {
	var out []byte
	for rest := greeting[5:]; len(rest) > 0; {
		part := rest[:min(n, len(rest))]
		out = append(out, 22, 3, 1, byte(len(part)>>8), byte(len(part)))
		out = append(out, part...)
		rest = rest[len(part):]
	}
	return out
}

func TestAGreetingIsReadHoweverItIsSplit(t *testing.T) {
	plain := greetingOf(t, "example.com")
	for _, size := range []int{len(plain), 100, 7, 1} {
		data := records(plain, size)
		if size == 1 { // no client does that, and to follow it would cost
			h := readHello(data)
			expect.True(t, h.state == damaged, "%+v", h)
			continue
		}
		for n := range data {
			h := readHello(data[:n])
			expect.Must(t, h.state == partial && h.need > n && h.need <= len(data), "records of %d, %d of %d bytes: state %d", size, n, len(data), h.state)
		}
		h := readHello(data)
		expect.True(t, h.state == whole && h.name == "example.com", "records of %d: %+v", size, h)
	}
	h := readHello(greetingOf(t, ""))
	expect.True(t, h.state == whole && h.name == "", "%+v", h)
}

func TestAGreetingThatCouldBeReadInTwoWaysIsNone(t *testing.T) {
	plain := greetingOf(t, "example.com")
	at := bytes.Index(plain, []byte("\x00\x00\x00\x10\x00\x0e\x00\x00\x0bexample.com"))
	expect.Must(t, at >= 0, "no server name in the greeting")
	extension := plain[at : at+20]
	// grow adds bytes of extensions behind the first server name.
	grow := func(more []byte) []byte {
		out := append(append(append([]byte{}, plain[:at+20]...), more...), plain[at+20:]...)
		add := func(i, size, n int) {
			for ; n > 0 && size > 0; size-- {
				n += int(out[i+size-1])
				out[i+size-1], n = byte(n), n>>8
			}
		}
		add(3, 2, len(more))
		add(6, 3, len(more))
		session := 5 + 4 + 2 + 32
		ciphers := session + 1 + int(out[session])
		compression := ciphers + 2 + int(out[ciphers])<<8 + int(out[ciphers+1])
		add(compression+1+int(out[compression]), 2, len(more))
		return out
	}
	h := readHello(grow([]byte{0x7a, 0x7a, 0, 0}))
	expect.True(t, h.state == whole && h.name == "example.com", "an unknown extension: %+v", h)
	for what, data := range map[string][]byte{
		"two names":           grow(extension),
		"an alert before":     append([]byte{21, 3, 1, 0, 2, 1, 0}, plain...),
		"an empty record":     append([]byte{22, 3, 1, 0, 0}, plain...),
		"too long":            grow(append([]byte{0x7a, 0x7a, 0x3f, 0xf0}, make([]byte, 0x3ff0)...)),
		"a record of 64 KiB":  {22, 3, 1, 0xff, 0xff},
		"another message":     {22, 3, 1, 0, 4, 2, 0, 0, 0},
		"nothing in it":       {22, 3, 1, 0, 4, 1, 0, 0, 0},
		"two messages in one": append(append([]byte{22, 3, 1, byte((len(plain) - 4) >> 8), byte(len(plain) - 4)}, plain[5:]...), 1),
	} {
		h := readHello(data)
		expect.True(t, h.state == damaged, "%s: %+v", what, h)
	}
	for _, other := range []string{"GET / HTTP/1.1", "SSH-2.0-x", "\x16\x02", "\x00", "\xff\x03"} {
		h := readHello([]byte(other))
		expect.True(t, h.state == notTLS, "%q: %+v", other, h)
	}
}

func FuzzReadHello(f *testing.F) {
	plain := greetingOf(f, "example.com")
	f.Add(plain)
	f.Add(records(plain, 9))
	f.Add([]byte{22, 3, 1, 0, 4, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		h := readHello(data)
		expect.True(t, (h.state == whole || h.name == "") && len(h.name) <= len(data) && (h.state != partial || h.need > len(data)), "%+v", h)
		// What was decided does not change by what comes after it in time.
		for _, n := range []int{1, 2, len(data) / 2} {
			if n < len(data) {
				if early := readHello(data[:n]); early.state != partial && early.state != h.state && h.state != damaged {
					t.Errorf("%+v, and before that %+v", h, early)
				}
			}
		}
	})
}

// talk is a connection on which everything was said already.
type talk struct {
	io.Reader
	io.Writer
}

func FuzzReadSocks(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x03\x09x.example\x01\xbb"))
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x04" + strings.Repeat("a", 16) + "\x01\xbb"))
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"))
	f.Fuzz(func(t *testing.T, data []byte) {
		to, code, err := readSocks(talk{bytes.NewReader(data), io.Discard})
		if err != nil {
			return
		}
		expect.True(t, code == 0 && to.Port != 0 && to.Host != "" && !strings.ContainsAny(to.Host, " /@\x00"), "%+v, code %d", to, code)
	})
}
