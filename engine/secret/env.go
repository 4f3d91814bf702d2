package secret

import (
	"bytes"

	"swarmdeck/engine/core"
)

// Hidden stands in the place of a text that is not shown.
const Hidden = "[hidden]"

// Env is the environment of a record. As JSON it shows references, and Hidden
// in the place of every other text; what stores it encodes the plain map.
type Env map[string]string

// Shown is the environment as it may be seen.
func (e Env) Shown() map[string]string {
	if e == nil {
		return nil
	}
	shown := make(map[string]string, len(e))
	for key, text := range e {
		if shown[key] = Hidden; Reference(text) != "" {
			shown[key] = text
		}
	}
	return shown
}

func (e Env) MarshalJSON() ([]byte, error) { return core.Encode(e.Shown()) }

// EnvOf is the environment that a task's input has, nil for none; what is
// wrong with it is its runner's to say.
func EnvOf(input core.Raw) Env {
	if !bytes.Contains(input, []byte(`env"`)) && !bytes.Contains(input, []byte(`\u`)) {
		return nil
	}
	var in struct {
		Env Env `json:"env"`
	}
	if core.DecodeStored(input, &in) != nil {
		return nil
	}
	return in.Env
}

// WithEnv is a task's input with another environment, or itself where it is
// no object.
func WithEnv(input core.Raw, env map[string]string) core.Raw {
	whole := map[string]core.Raw{}
	if core.DecodeStored(input, &whole) != nil {
		return input
	}
	whole["env"] = core.MustEncode(env)
	return core.MustEncode(whole)
}

// ShownInput is a task's input as it may be seen.
func ShownInput(input core.Raw) core.Raw {
	if env := EnvOf(input); len(env) > 0 {
		return WithEnv(input, env.Shown())
	}
	return input
}
