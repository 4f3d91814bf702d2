package mapping_test

import (
	"bytes"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
	"swarmdeck/expect"
)

var fetchScope = map[string]core.Raw{
	"params":   core.Raw(`{"location":"kitchen","speed":1.50,"big":9007199254740993,"tags":["a","b"],"none":null}`),
	"navigate": core.Raw(`{"final_position":{"x":10,"y":-2.5e3},"ok":true,"note":"it's \"here\"\n"}`),
	"detect-1": core.Raw(`{"objects":[{"id":"cup"},{"id":"plate"}],"empty":[],"grid":[[1,2],[3]]}`),
}

func TestReferencesTakeValuesWithTheirTypes(t *testing.T) {
	for _, c := range []struct{ params, want string }{
		{``, `{}`},
		{`{}`, `{}`},
		{`{"a":"plain","b":1.50,"c":null,"d":[true]}`, `{"a":"plain","b":1.50,"c":null,"d":[true]}`},
		{`{"a":"${params.speed}"}`, `{"a":1.50}`},
		{`{"a":"${params.big}"}`, `{"a":9007199254740993}`},
		{`{"a":"${params.none}"}`, `{"a":null}`},
		{`{"a":"${params.location}"}`, `{"a":"kitchen"}`},
		{`{"a":"${params.tags}","b":"${params.tags[1]}"}`, `{"a":["a","b"],"b":"b"}`},
		{`{"a":"${navigate}"}`, `{"a":` + string(fetchScope["navigate"]) + `}`},
		{`{"a":"${navigate.final_position}"}`, `{"a":{"x":10,"y":-2.5e3}}`},
		{`{"a":["${detect-1.objects[0].id}","${detect-1.grid[1][0]}"]}`, `{"a":["cup",3]}`},
		{`{"a":"go to ${params.location} at ${params.speed}!"}`, `{"a":"go to kitchen at 1.50!"}`},
		{`{"a":"<${navigate.note}>"}`, `{"a":"<it's \"here\"\n>"}`},
		{`{"a":"at ${navigate.final_position} ${params.none} ${navigate.ok}"}`, `{"a":"at {\"x\":10,\"y\":-2.5e3} null true"}`},
		{`{"a":"$${params.x} costs $5 $"}`, `{"a":"${params.x} costs $5 $"}`},
		{`{"a":"$${${params.location}}"}`, `{"a":"${kitchen}"}`},
		{`{"${params.x}":"name"}`, `{"${params.x}":"name"}`},
		{`{"a":{"b":[{"c":"${params.location}"}]}}`, `{"a":{"b":[{"c":"kitchen"}]}}`},
	} {
		got, err := mapping.Fill(core.Raw(c.params), fetchScope)
		expect.True(t, err == nil && string(got) == c.want, "%s\n got %s %v\nwant %s", c.params, got, err, c.want)
	}
}

func TestAMissingValueSaysWhereTheWayEnded(t *testing.T) {
	for _, c := range []struct{ params, field, say string }{
		{`{"a":"${navigate.speed}"}`, "params.a", "${navigate.speed}: navigate has no field speed; it has final_position, ok, note"},
		{`{"a":["x","${detect-1.objects[2].id}"]}`, "params.a[1]", "detect-1.objects has 2 items, counted from 0"},
		{`{"a":"${detect-1.empty[0]}"}`, "params.a", "detect-1.empty has 0 items"},
		{`{"a":"${navigate[0]}"}`, "params.a", "navigate is an object and no list"},
		{`{"a":"${params.location.street}"}`, "params.a", "params.location is a text and has no fields"},
		{`{"a":"${params.none.x}"}`, "params.a", "params.none is null and has no fields"},
		{`{"a":"${grasp.x}"}`, "params.a", "grasp has no value"},
		{`{"a":"${params.location"}`, "params.a", "no closing brace"},
		{`["${params.location}"]`, "params", "want a JSON object"},
		{`{"a":`, "", "not valid JSON"},
	} {
		_, err := mapping.Fill(core.Raw(c.params), fetchScope)
		expect.True(t, err != nil && strings.Contains(err.Error(), c.say) && strings.HasPrefix(err.Error(), c.field),
			"%s: %v, want %q at %q", c.params, err, c.say, c.field)
		field := core.AsError(err).Details["field"]
		expect.True(t, c.field == "" || field == c.field, "%s: field %v, want %s", c.params, field, c.field)
	}
}

func TestFilledParametersAreBounded(t *testing.T) {
	scope := map[string]core.Raw{"big": core.MustEncode(map[string]string{"text": strings.Repeat("x", 300<<10)})}
	for _, value := range []string{
		`["${big}","${big}","${big}","${big}"]`,
		`"${big.text}${big.text} ${big.text}${big.text}"`,
		`[` + strings.Repeat(`"${big}",`, 50_000) + `0]`,
	} {
		_, err := mapping.Fill(core.Raw(`{"a":`+value+`}`), scope)
		expect.True(t, err != nil && strings.Contains(err.Error(), "larger than 1048576 bytes"), "%.40s: %v", value, err)
	}
	deep := map[string]core.Raw{"d": core.Raw(strings.Repeat("[", 100) + strings.Repeat("]", 100))}
	expect.Says(t, expect.Fault(mapping.Fill(core.Raw(`{"a":`+strings.Repeat("[", 50)+`"${d}"`+strings.Repeat("]", 50)+`}`), deep)), "nested deeper", "depth")
}

func TestWhatIsFilledInIsNoReferenceItself(t *testing.T) {
	scope := map[string]core.Raw{"params": core.Raw(`{"text":"${secret.key} $${x} ${"}`), "secret": core.Raw(`{"key":"hunter2"}`)}
	got, err := mapping.Fill(core.Raw(`{"whole":"${params.text}","spliced":"<${params.text}>"}`), scope)
	want := `{"whole":"${secret.key} $${x} ${","spliced":"<${secret.key} $${x} ${>"}`
	expect.True(t, err == nil && string(got) == want, "got %s %v, want %s", got, err, want)
}

func FuzzReferences(f *testing.F) {
	for _, s := range []string{`{"a":"${x.y[0]}"}`, `{"a":"$${x}$${${x}"}`, `{"${":"${x"}`, `{"a":"${x[0][1].k}","b":["${params}"]}`, `"${x}"`, `{"a":"\ud83d${x}"}`} {
		f.Add([]byte(s))
	}
	scope := map[string]core.Raw{"x": core.Raw(`{"y":[1,{"k":"v"}],"z":"t"}`), "params": core.Raw(`{}`)}
	f.Fuzz(func(t *testing.T, params []byte) {
		got, err := mapping.Fill(params, scope)
		if err == nil && len(params) > 0 {
			expect.No(t, core.CheckObject("params", got, core.MaxInput), params, "became", got)
			if !bytes.Contains(params, []byte("$")) && !bytes.Contains(params, []byte("u0024")) {
				in, _ := core.Canonical(params)
				out, _ := core.Canonical(got)
				expect.Must(t, bytes.Equal(in, out), "%s without references became %s", params, got)
			}
		}
		if pieces, err := mapping.Parse(string(params)); err == nil {
			var back string
			for _, p := range pieces {
				if p.Ref != nil {
					back += p.Ref.Text
				} else {
					back += strings.ReplaceAll(p.Literal, "${", "$${")
				}
			}
			again, err := mapping.Parse(back)
			expect.Must(t, err == nil && len(again) == len(pieces), "%q parsed into %v, its text %q into %v %v", params, pieces, back, again, err)
		}
	})
}
