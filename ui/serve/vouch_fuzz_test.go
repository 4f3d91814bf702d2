package serve

import (
	"reflect"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// FuzzVouch has whatever is read be good, and the same when it is said again.
func FuzzVouch(f *testing.F) {
	f.Add(`{"tenant":"t_acme","name":"ann","user":1000,"seat":"/dev/pts/3"}`)
	f.Add(`{"tenant":"t_acme","name":"bob","key":"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"}`)
	f.Add(`{"tenant":"t_acme","name":"bob","name":"eve"}`)
	f.Add(`{"user":4294967296}`)
	f.Add("\xff")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseVouch(text)
		if err != nil {
			return
		}
		again, err := parseVouch(string(core.MustEncode(v)))
		expect.True(t, err == nil && reflect.DeepEqual(v, again), "%+v, again %+v, %v", v, again, err)
		who := v.who(Who{Peer: "deck1"})
		expect.True(t, who.Proof() != "" && (who.Key == "") != (who.User == "") && who.Role == "" && !who.Local, "%+v", who)
	})
}
