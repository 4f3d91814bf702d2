package notice_test

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	driver "swarmdeck/drivers/notice"
	"swarmdeck/engine/core"
	"swarmdeck/engine/notice"
	"swarmdeck/expect"
)

const key = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func TestMain(m *testing.M) {
	if err := cell.BecomeSubreaper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func sender(t *testing.T, env map[string]string) *driver.Sender {
	return patient(t, 2*time.Minute, env)
}

// hasty is for what never answers.
func hasty(t *testing.T) *driver.Sender { return patient(t, 500*time.Millisecond, nil) }

func patient(t *testing.T, patience time.Duration, env map[string]string) *driver.Sender {
	t.Helper()
	s := driver.New(driver.Options{Supervisor: drivertest.Cells(t, cell.Options{}), Dir: t.TempDir(), Getenv: func(n string) string { return env[n] }, Patience: patience})
	t.Cleanup(func() { expect.Is(t, s.Close(), nil) })
	return s
}

var message = notice.Message{ID: "msg_ev_1_n", Body: core.Raw(`{"type":"task.failed","text":"ü"}`)}

func TestAMessageIsSignedByTheStandard(t *testing.T) {
	var got *http.Request
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()
	s, began := sender(t, map[string]string{"HOOK": "whsec_" + key}), time.Now().Unix()
	expect.No(t, s.Send(t.Context(), notice.Notice{Name: "n", URL: srv.URL + "/a?b=c", SecretEnv: "HOOK"}, message))
	stamp := got.Header.Get("webhook-timestamp")
	secret, _ := base64.StdEncoding.DecodeString(key)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("msg_ev_1_n." + stamp + "." + string(message.Body)))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if got.Header.Get("webhook-signature") != want || got.Header.Get("webhook-id") != message.ID || got.Method != http.MethodPost ||
		got.URL.RequestURI() != "/a?b=c" || got.Header.Get("Content-Type") != "application/json" || string(body) != string(message.Body) {
		t.Errorf("%s %s %v %s", got.Method, got.URL, got.Header, body)
	}
	at, err := strconv.ParseInt(stamp, 10, 64)
	expect.True(t, err == nil && at >= began && at <= time.Now().Unix(), "timestamp %q", stamp)
}

func TestASecretIsNeverRepeated(t *testing.T) {
	for name, value := range map[string]string{"EMPTY": "", "RAW": "open-sesame", "BAD": "whsec_op!en", "SHORT": "whsec_b3Blbg=="} {
		err := sender(t, map[string]string{name: value}).Send(t.Context(), notice.Notice{URL: "http://127.0.0.1:1", SecretEnv: name}, message)
		expect.True(t, err != nil && strings.Contains(err.Error(), name) && (value == "" || !strings.Contains(err.Error(), value)), "%s: %v", name, err)
	}
}

func TestWhatAnAnswerMeans(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	for _, c := range []struct {
		code  int
		head  string
		final bool
		after time.Duration
		text  string
	}{
		{code: 307, text: "redirects are not followed"},
		{code: 400, final: true, text: "answered 400 Bad Request"},
		{code: 410, final: true},
		{code: 429, head: "7", after: 7 * time.Second},
		{code: 503, head: "99999999", after: 24 * time.Hour},
		{code: 503, head: "Wed, 21 Oct 2015 07:28:00 GMT"},
		{code: 500, head: "-1; soon", text: "500 Internal"},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", elsewhere.URL)
			w.Header().Set("Retry-After", c.head)
			w.WriteHeader(c.code)
		}))
		err := sender(t, nil).Send(t.Context(), notice.Notice{URL: srv.URL + "/very-secret-path"}, message)
		srv.Close()
		var f *notice.Failure
		if !errors.As(err, &f) || f.Final != c.final || f.After != c.after || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "secret-path") {
			t.Errorf("%d %q: %+v", c.code, c.head, f)
		}
	}
}

// Whatever the other side does, one try costs bounded time and memory.
func TestAHostileServerCostsLittle(t *testing.T) {
	for name, answer := range map[string]func(net.Conn){
		"garbage":         func(c net.Conn) { _, _ = c.Write([]byte("\x1b[2J\x00nonsense\r\n\r\n")) },
		"silence":         func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"endless headers": func(c net.Conn) { flood(c, "HTTP/1.1 200 OK\r\n", "X: "+strings.Repeat("y", 1000)+"\r\n") },
		"cut off":         func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 2")) },
	} {
		s := sender(t, nil)
		if name == "silence" {
			s = hasty(t)
		}
		err := s.Send(t.Context(), notice.Notice{URL: "http://" + raw(t, answer)}, message)
		expect.True(t, err != nil && !strings.ContainsRune(err.Error(), 0x1b), "%s: %v", name, err)
	}
	// A body without an end is not read; the status was what counts.
	endless := raw(t, func(c net.Conn) {
		flood(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "400\r\n"+strings.Repeat("z", 1024)+"\r\n")
	})
	expect.No(t, sender(t, nil).Send(t.Context(), notice.Notice{URL: "http://" + endless}, message))
	err := sender(t, nil).Send(t.Context(), notice.Notice{URL: "http://127.0.0.1:1/secret"}, message)
	expect.True(t, err != nil && !strings.Contains(err.Error(), "/secret"), "%v", err)
}

func flood(c net.Conn, head, again string) {
	if _, err := c.Write([]byte(head)); err != nil {
		return
	}
	for {
		if _, err := c.Write([]byte(again)); err != nil {
			return
		}
	}
}

// raw listens and gives each connection whose request has come to answer.
func raw(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					answer(c)
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestACommandGetsTheMessage(t *testing.T) {
	s := sender(t, nil)
	out := filepath.Join(t.TempDir(), "out")
	do := func(script string) error {
		return s.Send(t.Context(), notice.Notice{Name: "n", Command: []string{"sh", "-c", script, "sh", out}}, message)
	}
	expect.No(t, do(`cat > "$1"; echo "$NOTICE_ID" >> "$1"`))
	got, _ := os.ReadFile(out)
	expect.True(t, string(got) == string(message.Body)+"\n"+message.ID+"\n", "%s", got)
	if err := do("exit 0"); err != nil { // reads nothing
		t.Error(err)
	}
	expect.Says(t, do("echo one >&2; echo 'no mail today' >&2; exit 3"), "exited with status 3: no mail today")
	expect.Fails(t, s.Send(t.Context(), notice.Notice{Name: "n", Command: []string{"/no/such"}}, message), "a missing program counts as told")
	s = hasty(t)
	expect.Says(t, do("yes & yes >&2 & sleep 600"), "no answer within 500ms")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Err(t, s.Send(ctx, notice.Notice{Name: "n", Command: []string{"sleep", "600"}}, message), context.Canceled)
}
