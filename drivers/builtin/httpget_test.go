package builtin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func rawValue(s string) core.Raw { return core.Raw(s) }

type answer struct {
	Status     int               `json:"status"`
	URL        string            `json:"url"`
	Headers    map[string]string `json:"headers"`
	Body       *string           `json:"body"`
	BodyBase64 string            `json:"body_base64"`
}

// serve is a web server for one test.
func serve(t *testing.T, handle func(w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(handle))
	t.Cleanup(s.Close)
	return s.URL
}

func hello(t *testing.T) string {
	return serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
}

func TestHTTPGetBringsAnAnswerBack(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("X-Many", "one")
		w.Header().Add("X-Many", "two")
		switch r.URL.Path {
		case "/binary":
			_, _ = w.Write([]byte{0xff, 0xfe})
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
		default:
			fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL, r.Header.Get("X-Key"), r.UserAgent())
		}
	})
	b := newBench(t, nil)
	var a answer
	b.gives("http-get", map[string]any{"url": url + "/a?b=c#d", "headers": map[string]string{"x-key": "secret"}}, &a)
	expect.True(t, a.Status == 200 && a.Body != nil && *a.Body == "GET /a?b=c secret swarmdeck" && a.Headers["X-Many"] == "one, two", "answer %+v", a)
	a = answer{}
	b.gives("http-get", map[string]any{"url": url + "/missing"}, &a)
	expect.True(t, a.Status == 404 && a.Body != nil && *a.Body == "", "answer %+v", a)
	a = answer{}
	b.gives("http-get", map[string]any{"url": url + "/binary"}, &a)
	expect.True(t, a.Body == nil && a.BodyBase64 == "//4=", "answer %+v", a)
}

func TestHTTPGetRefusesWhatItShouldNotSend(t *testing.T) {
	b := newBench(t, nil)
	for _, url := range []string{"", "ftp://example.org/", "file:///etc/passwd", "//example.org", "http://", "http://:80/", "http://a b/", "http://example.org/" + strings.Repeat("x", 9000), "HTTP//x"} {
		b.fails("http-get", map[string]any{"url": url}, "invalid_input", "url:")
	}
	for _, header := range []map[string]string{{"a b": "x"}, {"": "x"}, {"Host": "other"}, {"X": "a\r\nY: b"}, {"X": "a\x00"}} {
		b.fails("http-get", map[string]any{"url": "http://127.0.0.1:1/", "headers": header}, "invalid_input", "headers")
	}
	many := map[string]string{}
	for i := range 51 {
		many[fmt.Sprint("X-", i)] = "x"
	}
	b.fails("http-get", map[string]any{"url": "http://127.0.0.1:1/", "headers": many}, "invalid_input", "at most 50")
	b.fails("http-get", `{"url":"http://127.0.0.1:1/","method":"POST"}`, "invalid_input", "method: unknown field")
	b.fails("http-get", `{"url":"http://127.0.0.1:1/","max_bytes":1048577}`, "invalid_input", "max_bytes")
}

func TestHTTPGetFailsWhenNobodyAnswers(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	b := newBench(t, nil)
	o := b.run("http-get", map[string]any{"url": s.URL})
	expect.True(t, o.Status == task.Failed && o.Error.Code == "unavailable" && o.Error.Retryable && strings.Contains(o.Error.Message, "connection refused"),
		"outcome %+v %+v", o, o.Error)
}

func TestRedirectsAreBoundedAndLeadToTheWebOnly(t *testing.T) {
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the other host was asked for %s", r.URL) })
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		to := map[string]string{
			"/loop": "/loop", "/one": "/two", "/file": "file:///etc/passwd", "/gopher": "gopher://x", "/other": other, "/none": "",
		}[r.URL.Path]
		if n := len(r.URL.Path); strings.HasPrefix(r.URL.Path, "/n") && n > 2 {
			to = r.URL.Path[:n-1]
		}
		if to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		fmt.Fprint(w, r.URL.Path+r.Header.Get("X-Key"))
	})
	b := newBench(t, nil)
	headers := map[string]string{"X-Key": "secret"}
	for path, say := range map[string]string{
		"/loop": "more than 5 redirects", "/nnnnnnn": "more than 5 redirects",
		"/file": "to file:", "/gopher": "to gopher:", "/other": "to " + other,
	} {
		b.fails("http-get", map[string]any{"url": url + path}, "redirect_refused", say)
	}
	var a answer
	b.gives("http-get", map[string]any{"url": url + "/one", "headers": headers}, &a)
	if *a.Body != "/twosecret" || a.URL != url+"/two" {
		t.Errorf("answer %+v %s", a, *a.Body)
	}
	b.gives("http-get", map[string]any{"url": url + "/nnnnnn"}, &a)
}

func TestALargeOrEndlessBodyIsRefused(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/exact" {
			fmt.Fprint(w, strings.Repeat("x", 1000))
			return
		}
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	b := newBench(t, nil)
	b.fails("http-get", map[string]any{"url": url + "/flood"}, "too_large", "longer than max_bytes, 262144")
	b.fails("http-get", map[string]any{"url": url + "/flood", "max_bytes": 1 << 20}, "too_large", "1048576")
	b.fails("http-get", map[string]any{"url": url + "/exact", "max_bytes": 999}, "too_large", "999")
	var a answer
	b.gives("http-get", map[string]any{"url": url + "/exact", "max_bytes": 1000}, &a)
	expect.Is(t, len(*a.Body), 1000)
}

func TestAHangingServerIsLeftAtOnce(t *testing.T) {
	release, asked := make(chan struct{}), make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			fmt.Fprint(w, "some")
			w.(http.Flusher).Flush()
		}
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	b := newBench(t, nil)
	before := runtime.NumGoroutine()
	for _, path := range []string{"/head", "/body"} {
		w := b.start("http-get", map[string]any{"url": url + path})
		<-asked
		expect.No(t, w.Pause(t.Context()), "a request that waits can be paused")
		w.Cancel("timed out")
		<-w.Done()
		o := w.Outcome()
		expect.True(t, o.Status == task.Cancelled, "%s: %+v %+v", path, o, o.Error)
	}
	expect.Await(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

func TestTheNetworksOwnAddressesAreNotAsked(t *testing.T) {
	b := newBench(t, nil)
	for _, url := range []string{"http://169.254.169.254/latest/meta-data/", "http://[::ffff:169.254.169.254]/", "http://[fe80::1]/", "http://[fd00:ec2::254]/"} {
		b.fails("http-get", map[string]any{"url": url}, "address_refused", "metadata")
	}
	// Spellings that only the resolver understands end at the same address.
	for _, url := range []string{"http://2852039166/", "http://0xa9fea9fe/", "http://169.254.43518/"} {
		o := b.run("http-get", map[string]any{"url": url})
		expect.True(t, o.Status == task.Failed, "%s: %+v", url, o)
	}
}
