// Package modelproxy records what agents say to their models. It listens on
// the loopback alone, at a port for each agent, passes each request on to the
// agent's real model API under a path that nobody else can guess, and tells whoever keeps the agent
// what was asked and what was answered.
//
// It streams both ways as things come. Two moments alone are held: the last
// byte of a request until the request is on record, since the model may act on
// it then, and the end of an answer until the answer is, since the agent may. In
// a stream that begins with the first call of a tool that comes whole.
//
// It understands chat completions and responses (OpenAI), messages (Anthropic)
// and generateContent (Gemini), streamed or whole. What else an agent sends
// there, such as lists of models, is passed on unseen. What is kept is bounded:
// of a body past that, or an encoded one, there are only its size and digest, of
// a long part of an answer its beginning too, and of a long event of a stream
// its size alone. Headers and queries are never kept, and the credentials
// in them are blotted out where a body repeats them.
//
// The credential of a model is not the agent's: its environment holds a random
// placeholder, new for each process, and the proxy puts the credential in where
// a request on that agent's line shows it. Nothing of this outlives the engine,
// and no agent's process does.
package modelproxy
