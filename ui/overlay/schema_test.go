package overlay_test

import (
	"reflect"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/screen/screentest"
)

func TestASchemaBecomesFields(t *testing.T) {
	f := func(name string, typ overlay.FieldType) overlay.Field { return overlay.Field{Name: name, Type: typ} }
	tests := []struct {
		name, property string
		want           overlay.Field
	}{
		{"text", `{"type":"string"}`, f("p", overlay.StringField)},
		{"a number", `{"type":["null","number"]}`, f("p", overlay.NumberField)},
		{"a whole number", `{"type":"integer","default":3}`, overlay.Field{Name: "p", Type: overlay.IntegerField, Default: raw("3")}},
		{"yes or no", `{"type":"boolean"}`, f("p", overlay.BooleanField)},
		{"an enum", `{"type":"string","enum":["a",1,null]}`, overlay.Field{Name: "p", Type: overlay.EnumField, Enum: []core.Raw{raw(`"a"`), raw("1"), raw("null")}}},
		{"a constant", `{"const":{"a":1}}`, overlay.Field{Name: "p", Type: overlay.EnumField, Enum: []core.Raw{raw(`{"a":1}`)}}},
		{"several types", `{"type":["string","number"]}`, f("p", overlay.JSONField)},
		{"an array", `{"type":"array","minItems":2}`, overlay.Field{Name: "p", Type: overlay.JSONField, Description: "(at least 2 items)"}},
		{"anything", `true`, f("p", overlay.JSONField)},
		{"a reference", `{"$ref":"#/$defs/x"}`, f("p", overlay.JSONField)},
		{"nonsense", `{"type":7,"enum":3,"description":[],"title":"T"}`, overlay.Field{Name: "p", Type: overlay.JSONField, Description: "T"}},
		{"rules", `{"type":"string","title":"T","description":"How much.","minLength":1,"pattern":"^a"}`, overlay.Field{Name: "p", Type: overlay.StringField, Description: "How much. (at least 1 characters, like ^a)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := overlay.SchemaFields(raw(`{"type":"object","properties":{"p":` + tt.property + `}}`))
			expect.True(t, len(got) == 1 && reflect.DeepEqual(got[0], tt.want), "got %+v, want %+v", got, tt.want)
		})
	}
	got := overlay.SchemaFields(raw(`{"required":["b"],"properties":{"z":{},"b":{},"a":{}}}`))
	expect.True(t, len(got) == 3 && got[0].Name == "z" && got[1].Name == "b" && got[1].Required && !got[2].Required, "in order: %+v", got)
	for _, schema := range []string{"", "true", "{", `{"properties":7}`, `{"properties":{"a":{},"a":{}}}`, `[]`} {
		got := overlay.SchemaFields(raw(schema))
		expect.True(t, len(got) == 0, "%s gives %+v", schema, got)
	}
}

func TestAFormOfASchemaLooksRight(t *testing.T) {
	form := overlay.NewForm("invoke grasp@2.0.0", overlay.SchemaFields(raw(`{"type":"object","required":["object_id","force_n"],"properties":{
		"object_id":{"type":"string","description":"What to grasp, as detect named it."},
		"force_n":{"type":"number","minimum":0,"maximum":40,"default":12.5,"description":"Force of the fingers in newtons."},
		"hand":{"enum":["left","right"],"default":"right"},
		"dry_run":{"type":"boolean","default":false},
		"waypoints":{"type":"array","items":{"type":"number"},"default":[0,0.5,1]}}}`)))
	keys(form, "tab")
	screentest.Golden(t, draw(form, 80, 24, screen.Unicode()), "form-schema-80x24")
}

func FuzzSchemaFields(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"type":"string","enum":["x"],"default":"x"},"b":true}}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		form := overlay.NewForm("x", overlay.SchemaFields(schema))
		a := keys(form, "tab", "x", "enter")
		expect.Must(t, a.Kind != overlay.Submit || raw(a.Text).IsValid(), "it made %q", a.Text)
		draw(form, 80, 24, screen.Unicode())
	})
}
