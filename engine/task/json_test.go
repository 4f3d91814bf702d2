package task

import (
	"reflect"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestHeadersAreWrittenAsTheGeneralEncoderWritesThem(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.UTC)
	full := Task{}
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() { // every field set, so that a new one can't be forgotten
		switch f := v.Field(i); f.Interface().(type) {
		case time.Time:
			f.Set(reflect.ValueOf(at.Add(time.Duration(i) * time.Minute)))
		case core.Raw:
			f.Set(reflect.ValueOf(core.Raw(`{"a":[1,"<&>"]}`)))
		case []string:
			f.Set(reflect.ValueOf([]string{"tk_1", "tk_\"2"}))
		case *Expect:
			f.Set(reflect.ValueOf(&Expect{core.Raw(`{"type":"object"}`), "output.rc < 1 && true"}))
		default:
			switch f.Kind() {
			case reflect.String:
				f.SetString("Zoë <b>&\x00\u2028\"\\\x1b \U0001F600 " + v.Type().Field(i).Name)
			case reflect.Int:
				f.SetInt(int64(i) + 7)
			case reflect.Uint64:
				f.SetUint(uint64(i) + 1<<60)
			case reflect.Bool:
				f.SetBool(true)
			default:
				t.Fatalf("field %s: teach this test its type", v.Type().Field(i).Name)
			}
		}
	}
	for name, header := range map[string]Task{
		"empty": {}, "full": full,
		"typical": {TenantID: "t_acme", TaskID: "tk_1", Kind: "exec.run", Status: Queued, Priority: 50, MaxAttempts: 3, CreatedAt: at, UpdatedAt: at},
	} {
		want := expect.Of(core.Encode(&header))(t)
		got := header.appendJSON(nil)
		expect.True(t, string(got) == string(want), "%s:\n got %s\nwant %s", name, got, want)
	}
}

func TestResultsAreWrittenAsTheGeneralEncoderWritesThem(t *testing.T) {
	at, sure := time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.UTC), 0.1+0.2
	fail := &Error{Code: "x", Message: "<b>\x00\u2028", Retryable: true, Details: core.Raw(`{"a":[1]}`)}
	for name, r := range map[string]Result{
		"plain": {TenantID: "t_acme", TraceID: "4b", TaskID: "tk", Status: Succeeded, Output: core.Raw(`{}`), CompletedAt: at},
		"full":  {TenantID: "t_acme", Status: Failed, Output: core.Raw(`{"a":"<&>"}`), Error: fail, ProducedBy: "w\"1", CompletedAt: at, Confidence: &sure, Denials: []string{"gd_1", "gd_2"}},
	} {
		want := expect.Of(core.Encode(&r))(t)
		got := r.appendJSON(nil)
		expect.True(t, string(got) == string(want), "%s:\n got %s\nwant %s", name, got, want)
	}
	expect.Is(t, reflect.TypeFor[Result]().NumField(), 10, "a result has")
}

func BenchmarkHeader(b *testing.B) {
	header := Task{
		TenantID: "t_acme", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", TaskID: "tk_7f3ac_0000000042", Kind: "exec.run", Status: Running,
		Priority: 50, MaxAttempts: 3, CreatedAt: time.Now().UTC(), UpdatedAt: time.Now().UTC(), StartedAt: time.Now().UTC(),
		Title: "git log --oneline", Worker: "engine", Lease: 77, CreatedBy: "alice", CreatedKind: core.Operator, CreatedPerson: "uid:1000", AuditSeq: 1234,
		Policy: "9808f682dd03c1c6a1d0b3f2d4e5f60718293a4b5c6d7e8f9808f682dd03c1c6",
	}
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			header.appendJSON(make([]byte, 0, 640))
		}
	})
	b.Run("general", func(b *testing.B) {
		for b.Loop() {
			core.MustEncode(&header)
		}
	})
	data := core.MustEncode(&header)
	b.Run("decode", func(b *testing.B) {
		var t Task
		for b.Loop() {
			_ = core.DecodeStored(data, &t)
		}
	})
}
