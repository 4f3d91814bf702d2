package acp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/engine/core"
)

// greeting is what an agent says of itself. Only what is used is read, so that
// news in the rest harm nobody.
type greeting struct {
	ProtocolVersion   int `json:"protocolVersion"`
	AgentCapabilities struct {
		LoadSession        bool `json:"loadSession"`
		PromptCapabilities struct {
			EmbeddedContext core.Raw `json:"embeddedContext"`
		} `json:"promptCapabilities"`
		SessionCapabilities struct {
			Resume core.Raw `json:"resume"`
			Close  core.Raw `json:"close"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	AuthMethods []authMethod `json:"authMethods"`
}

type authMethod struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// has reports whether an optional capability was offered.
func has(capability core.Raw) bool { return len(capability) > 0 && capability.Kind() == '{' }

// greet agrees on the protocol and logs in.
func (pe *peer) greet(ctx context.Context) error {
	err := pe.conn.Call(ctx, acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber,
		ClientCapabilities: acp.ClientCapabilities{
			Fs:          acp.FileSystemCapabilities{ReadTextFile: pe.place.FS != "", WriteTextFile: pe.place.FS == "write"},
			Terminal:    pe.place.Terminal,
			Elicitation: &acp.ElicitationCapabilities{Form: &acp.ElicitationFormCapabilities{}},
		},
		ClientInfo: &acp.Implementation{Name: "swarmdeck", Version: "1"},
	}, &pe.can)
	if err != nil {
		return fmt.Errorf("greet the agent: %w", pe.blame(err))
	}
	if pe.can.ProtocolVersion != acp.ProtocolVersionNumber {
		return core.Errorf(core.Unavailable, "the agent speaks version %d of the protocol, this runtime %d",
			pe.can.ProtocolVersion, acp.ProtocolVersionNumber)
	}
	if pe.place.Auth == "" {
		return nil
	}
	if !pe.offers(pe.place.Auth) {
		return core.Invalid("options.auth", pe.place.Auth, pe.logins())
	}
	err = pe.conn.Call(ctx, acp.AgentMethodAuthenticate, acp.AuthenticateRequest{MethodId: pe.place.Auth}, nil)
	if err != nil {
		return fmt.Errorf("log the agent in: %w%s", pe.blame(err), pe.way())
	}
	return nil
}

// maxLogin is how much of a way to log in is told, in bytes.
const maxLogin = 150

// way says how to log it in.
func (pe *peer) way() string {
	return "; log it in by hand, or set options.auth to " + pe.logins()
}

// logins lists the ways to log in that the agent offers.
func (pe *peer) logins() string {
	var list []string
	for _, m := range pe.can.AuthMethods {
		list = append(list, core.OneLine(m.ID+" ("+strings.TrimSuffix(m.Name+": "+m.Description, ": ")+")", maxLogin))
	}
	if len(list) == 0 {
		return "nothing: the agent offers no login"
	}
	return "one of " + strings.Join(list, ", ")
}

func (pe *peer) offers(id string) bool {
	return slices.ContainsFunc(pe.can.AuthMethods, func(m authMethod) bool { return m.ID == id })
}
