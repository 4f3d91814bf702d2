package acp

import (
	"fmt"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/engine/core"
)

// block is a content block: text, image, audio, resource_link or resource.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource *struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
}

// readBlock turns a content block into text. One of a kind that is not known
// is kept as it came, so that nothing said is lost.
func readBlock(raw core.Raw) string {
	var b block
	if len(raw) == 0 {
		return ""
	}
	if jsonrpc.Decode(raw, &b) != nil {
		return core.ClipTo(string(raw), maxNoise)
	}
	switch b.Type {
	case "text":
		return b.Text
	case "image", "audio":
		return fmt.Sprintf("[%s %s, %d bytes]", b.Type, b.MimeType, len(b.Data)/4*3)
	case "resource_link":
		return fmt.Sprintf("[%s %s]", b.Name, b.URI)
	case "resource":
		if b.Resource != nil {
			return fmt.Sprintf("[%s]\n%s", b.Resource.URI, b.Resource.Text)
		}
	}
	return "[unknown content] " + core.ClipTo(string(raw), maxNoise)
}
