package e2e

import (
	"encoding/json"
	"os"
	"testing"

	"swarmdeck/drivers/mcp"
	"swarmdeck/expect"
)

func TestTheExampleOfAClientIsReadable(t *testing.T) {
	t.Parallel()
	data := expect.Of(os.ReadFile("examples/mcp/client.json"))(t)
	var config struct {
		Servers map[string]struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
			URL     string   `json:"url"`
		} `json:"mcpServers"`
	}
	err := json.Unmarshal(data, &config)
	expect.True(t, err == nil && config.Servers["swarmdeck"].Args[0] == "mcp" && config.Servers["swarmdeck-over-http"].URL != "", "%+v %v", config, err)
	data = expect.Of(os.ReadFile("examples/mcp/tokens.yaml"))(t)
	tokens, err := mcp.LoadTokens("tokens.yaml", data, "t_default")
	expect.True(t, err == nil && len(tokens.Tenants()) == 1, "%v", err)
}
