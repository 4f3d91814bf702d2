// Reads a CAR file with IPLD's own libraries: node ipld.mjs FILE. It checks each
// block against its CID, and that the root leads to all blocks and to no other,
// and prints the digests of the events in their order.
import { createReadStream } from "node:fs";
import { argv, exit } from "node:process";
import { CarBlockIterator } from "@ipld/car";
import * as dagJSON from "@ipld/dag-json";
import { CID } from "multiformats/cid";
import * as raw from "multiformats/codecs/raw";
import { sha256 } from "multiformats/hashes/sha2";

const codecs = { [dagJSON.code]: dagJSON, [raw.code]: raw };
const fail = (text) => {
	console.error(text);
	exit(1);
};
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const file = await CarBlockIterator.fromIterable(createReadStream(argv[2]));

const blocks = new Map();
for await (const { cid, bytes } of file) {
	if (!(cid.code in codecs)) fail(`${cid}: codec ${cid.code}`);
	const digest = await sha256.digest(bytes);
	if (!CID.createV1(cid.code, digest).equals(cid)) fail(`${cid}: the block has the digest ${hex(digest.digest)}`);
	const value = codecs[cid.code].decode(bytes);
	if (hex(codecs[cid.code].encode(value)) !== hex(bytes)) fail(`${cid}: is not written as its codec writes it`);
	blocks.set(cid.toString(), value);
}

const roots = await file.getRoots();
if (roots.length !== 1) fail(`${roots.length} roots`);
const used = new Set();
const get = (cid) => {
	const at = cid.toString();
	if (!blocks.has(at)) fail(`${at} is missing`);
	used.add(at);
	return blocks.get(at);
};
for (const page of get(roots[0]).pages) {
	for (const entry of get(page).entries) {
		const { event, prev } = get(entry);
		get(event);
		if (prev !== undefined) get(prev);
		console.log(hex(event.multihash.digest));
	}
}
if (used.size !== blocks.size) fail(`${used.size} of ${blocks.size} blocks are linked`);
