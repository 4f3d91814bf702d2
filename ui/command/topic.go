package command

import "embed"

// topicFiles are texts of help that belong to no one command, by NAME.txt.
//
//go:embed topics
var topicFiles embed.FS

// topic is the text of help about something that is no command.
func topic(name string) (string, bool) {
	text, err := topicFiles.ReadFile("topics/" + name + ".txt")
	return string(text), err == nil
}
