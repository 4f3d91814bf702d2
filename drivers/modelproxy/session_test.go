package modelproxy

import (
	"net/http"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestARequestSaysWhichSessionItIsPartOf(t *testing.T) {
	for _, c := range []struct {
		header http.Header
		params string
		want   string
	}{
		{http.Header{"Session_id": {"s1"}}, `{}`, "s1"},
		{http.Header{"Conversation_id": {"c1"}, "Session_id": {" c1 "}}, ``, "c1"},
		{http.Header{"X-Claude-Code-Session-Id": {"u1"}, "Thread-Id": {"t1"}}, `{"metadata":{"user_id":"user_ab_account_cd_session_u2"}}`, "t1 u1 u2"},
		{nil, `{"prompt_cache_key":"p1","metadata":{"session_id":"m1"}}`, "p1 m1"},
		{nil, `{"metadata":{"user_id":"{\"device_id\":\"d\",\"session_id\":\"u3\"}"}}`, "u3"},
		{nil, `{"prompt_cache_key":7,"metadata":{"user_id":["x"],"session_id":null}}`, ""},
		{nil, `{"metadata":"x"}`, ""},
		{http.Header{"Session_id": {strings.Repeat("x", maxSession+1), ""}}, `not JSON`, ""},
		{http.Header{"Session-Id": strings.Fields("a b c d e f g h i j")}, `{}`, "a b c d e f g h"},
		{http.Header{"Authorization": {"Bearer x"}, "X-Session": {"y"}}, `{}`, ""},
	} {
		expect.Is(t, strings.Join(sessionsOf(c.header, core.Raw(c.params)), " "), c.want, c.header, c.params)
	}
}
