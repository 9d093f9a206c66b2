import { MOST_CHECKPOINT, MOST_ENTRIES, parseCheckpoint } from '../../node-agent/assignments/checkpoint.ts';
import { MOST_YAML } from '../../node-agent/files/bounded-yaml.ts';
import { createQuestionReader } from '../../node-agent/gate/protocol.ts';
import { parseKubeletConfig } from '../../node-agent/host/kubelet-config.ts';
import { createJsonStream } from '../../node-agent/open-vswitch/ovsdb/json-stream.ts';
import { vector } from '../../test/support/vectors.ts';
import { bytesInput, filled, type Parser, PER_CALL, PER_LOCAL, textInput } from './measure.ts';

const state = textInput(parseCheckpoint);
/** A checkpoint with many containers. */
function checkpointText(length: number, cpus: (index: number) => string): string {
  const entries = Object.fromEntries(Array.from({ length }, (_, i) => [`u${i}`, { c: cpus(i) }]));
  return JSON.stringify({ policyName: 'static', defaultCpuSet: '0', entries, checksum: 1 });
}
/** Characters of one container's CPUs, with the largest number of containers. */
const EACH = MOST_CHECKPOINT / MOST_ENTRIES - 40;

const checkpoint: Parser = {
  name: 'checkpoint',
  typical: state(checkpointText(20, (i) => `${i * 2}-${i * 2 + 1}`)),
  worst: {
    'one high CPU each': () => state(checkpointText(MOST_ENTRIES, () => '8191')),
    'many ranges and one high CPU each': () =>
      state(checkpointText(MOST_ENTRIES, () => `${filled(999, '0', { joint: ',', most: 64 })},8191`)),
    'wide ranges': () => state(checkpointText(MOST_ENTRIES, () => filled(EACH, '0-8191', { joint: ',', most: 64 }))),
    'as much text as a file has': () =>
      state(checkpointText(MOST_ENTRIES, (i) => filled(EACH, (n) => `${(i + n * 2) % 8192}`, { joint: ',' }))),
    'pods without containers': () =>
      state(
        filled(MOST_CHECKPOINT, (i) => `"${i}":{}`, {
          head: '{"policyName":"static","defaultCpuSet":"0","entries":{',
          joint: ',',
          tail: '}}',
        }),
      ),
  },
  milliseconds: PER_LOCAL,
};

const LARGEST_VALUE = 8 * 1024 * 1024;
const stream = bytesInput((bytes) => createJsonStream()(bytes).length > 0);
const ovsdb: Parser = {
  name: 'ovsdb-stream',
  typical: stream(JSON.stringify(vector('ovsdb-updates.json'))),
  worst: {
    'one value of empty arrays': () => stream(filled(LARGEST_VALUE, '[]', { head: '[', joint: ',', tail: ']' })),
    'one value of a string': () => stream(filled(LARGEST_VALUE, 'a', { head: '["', tail: '"]' })),
    'one value of escapes': () => stream(filled(LARGEST_VALUE, '\\n', { head: '["', tail: '"]' })),
    'one value of keys': () => stream(filled(LARGEST_VALUE, (i) => `"${i}":0`, { head: '{', joint: ',', tail: '}' })),
    'short values': () => stream(filled(64 * 1024, '{}')),
  },
  // Each value has two bytes and costs a call of the JSON parser.
  perByte: 60,
  milliseconds: PER_LOCAL,
};

/** A request in the shim's format. */
function questionText(environment: string, conf: string): string {
  return `plumbline-gate/1 ADD ${environment.length} ${conf.length}\n${environment}${conf}`;
}
const ENVIRONMENT = 64 * 1024;
const CONF = 1024 * 1024;
const asked = bytesInput((bytes) => createQuestionReader().read(bytes) !== undefined);
const byBytes = bytesInput((bytes) => {
  const reader = createQuestionReader();
  let found: unknown;
  for (let i = 0; i < bytes.length; i++) found = reader.read(bytes.subarray(i, i + 1));
  return found !== undefined;
});
const USUAL =
  'CNI_COMMAND=ADD\0CNI_CONTAINERID=c\0CNI_NETNS=/var/run/netns/a\0CNI_IFNAME=eth0\0CNI_PATH=/opt/cni/bin\0';

const gate: Parser = {
  name: 'gate-request',
  typical: asked(questionText(USUAL, '{"cniVersion":"1.0.0","name":"east","type":"plumbline-gate"}')),
  worst: {
    variables: () =>
      asked(
        questionText(
          filled(ENVIRONMENT, (i) => `${i}=\0`),
          '{}',
        ),
      ),
    'variables without a name': () => asked(questionText(filled(ENVIRONMENT, '=\0'), '{}')),
    separators: () => asked(questionText(filled(ENVIRONMENT, '\0'), '{}')),
    'the longest configuration': () => asked(questionText(USUAL, filled(CONF, 'a'))),
    'a byte at a time': () => byBytes(questionText(filled(ENVIRONMENT, '=\0'), filled(ENVIRONMENT, 'a'))),
  },
  milliseconds: PER_CALL,
};

const KIND = 'kind: KubeletConfiguration\n';
const config = textInput((text) => parseKubeletConfig('config.yaml', text) !== undefined);
const kubelet: Parser = {
  name: 'kubelet-config',
  typical: config(
    `apiVersion: kubelet.config.k8s.io/v1beta1\n${KIND}cpuManagerPolicy: static\ncpuManagerPolicyOptions:\n  full-pcpus-only: "true"\ntopologyManagerPolicy: best-effort\nreservedSystemCPUs: 0-1\nfeatureGates:\n  A: true\nevictionHard:\n  memory.available: 100Mi\n`,
  ),
  worst: {
    'a list in brackets': () => config(filled(MOST_YAML, 'a', { head: `${KIND}x: [`, joint: ',', tail: ']\n' })),
    'a list of lines': () => config(filled(MOST_YAML, '- a\n', { head: `${KIND}x:\n` })),
    'lists within lists': () => config(filled(MOST_YAML, '- - - a\n', { head: `${KIND}x:\n` })),
    'empty maps': () => config(filled(MOST_YAML, '{}', { head: `${KIND}x: [`, joint: ',', tail: ']\n' })),
    keys: () => config(filled(MOST_YAML, (i) => `k${i}: 1\n`, { head: KIND })),
    comments: () => config(filled(MOST_YAML, '#\n', { head: KIND })),
    'empty lines': () => config(filled(MOST_YAML, '\n', { head: KIND })),
    anchors: () => config(filled(MOST_YAML, '- &a a\n', { head: `${KIND}x:\n` })),
    aliases: () => config(filled(MOST_YAML, '- *a\n', { head: `${KIND}y: &a 1\nx:\n`, most: 99 })),
    'a folded text': () => config(filled(MOST_YAML, '  a\n', { head: `${KIND}x: >\n` })),
    'a quoted text': () => config(filled(MOST_YAML, '\\x41', { head: `${KIND}x: "`, tail: '"\n' })),
  },
  // `a,` is a node of the tree for every two bytes, a typical file has one for every ten, and the garbage collector moves
  // the nodes of a large tree twice: 2.3 µs a byte up to 4 kB, 6 µs from 16 kB to the limit.
  perByte: 20,
  milliseconds: PER_LOCAL,
};

export const NODE: readonly Parser[] = [checkpoint, ovsdb, gate, kubelet];
