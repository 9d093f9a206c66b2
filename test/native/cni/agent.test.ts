import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until.ts';
import { GATED, useAgent, useGate, writeState } from '../gate-stage.ts';

const STATE = 'DPU Not Ready: as last known';

/** The answer of an agent in pieces as they arrive, and the result of the gate: [exit code, CNI code, message]. */
const ANSWERS: readonly [string, readonly string[], readonly [number, number?, string?]][] = [
  ['a pass', ['allow\n'], [0]],
  ['a pass in two pieces', ['al', 'low\n'], [0]],
  ['a wait and a pass in one piece', ['wait\nallow\n'], [0]],
  ['a wait and a refusal in one piece', ['wait\ndeny 12 5\nhello'], [1, 12, 'hello']],
  ['a refusal whose code has two different digits', ['deny 27 5\nhello'], [1, 27, 'hello']],
  ['a refusal split in its number', ['deny 1', '2 5\nhello'], [1, 12, 'hello']],
  ['a refusal split in its text', ['deny 12 5\nhe', 'llo'], [1, 12, 'hello']],
  ['a refusal with more text after it', ['deny 12 5\nhello and more'], [1, 12, 'hello']],
  ['a refusal without a text', ['deny 12 0\n'], [1, 12, '']],
  ['a refusal with quotes and a newline', ['deny 12 6\na"b\\\nc'], [1, 12, 'a"b\\\nc']],
  ['a refusal without a code', ['deny  5\nhello'], [1, 11, STATE]],
  ['a code that is not a number', ['deny 1x 5\nhello'], [1, 11, STATE]],
  ['a code without a blank before it', ['deny:12 5\nhello'], [1, 11, STATE]],
  ['a code of seven digits', ['deny 1234567 5\nhello'], [1, 11, STATE]],
  ['a refusal without a length', ['deny 12\nhello'], [1, 11, STATE]],
  ['a length that is too long', ['deny 12 999999\nhello'], [1, 11, STATE]],
  ['a refusal that ends before its text', ['deny 12 50\nhello'], [1, 11, STATE]],
  ['an unknown answer', ['allowed\n'], [1, 11, STATE]],
  ['an end without an answer', [], [1, 11, STATE]],
];

describe('the CNI plugin reads the answers of its agent', () => {
  const gate = useGate();
  let pieces: readonly string[] = [];
  /** Awaited after each piece. */
  let pause: () => Promise<unknown>;
  /** Whether the agent closes after its last piece, as it does after a refusal. */
  let ends = true;
  useAgent(gate, async (socket) => {
    await once(socket, 'data');
    for (const piece of pieces) {
      socket.write(piece, 'latin1');
      // The gate reads all available data at once; two pieces that arrive together are a separate case.
      await pause();
    }
    if (ends) socket.end();
  });
  beforeEach(() => {
    ends = true;
    pause = () => delay(20);
    writeState(gate.state, { dpu: 'not-ready', reason: 'as last known' });
  });

  for (const [name, answer, [exit, code, message]] of ANSWERS) {
    it(`${name}: ${message === STATE ? 'the state file decides' : code === undefined ? 'passes' : `code ${code}`}`, async () => {
      pieces = answer;
      assert.deepEqual(await gate.outcome({ conf: GATED }), [exit, code, message]);
    });
  }

  it('characters are passed on; each invalid byte becomes a question mark', async () => {
    const characters = ['\x7e', '\u0080', '\u07ff', '\u0800', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{10ffff}'];
    const overlong = ['c080', 'c1bf', 'e08080', 'e09fbf', 'f0808080', 'f08fbfbf'];
    const beyond = ['eda080', 'edbfbf', 'f4908080', 'f5808080', 'ff', '80', 'bf', 'e282', 'f09f98', 'c3', 'e28241'];
    const invalid = [...overlong, ...beyond];
    const bytes = [...characters.map((text) => Buffer.from(text)), ...invalid.map((hex) => Buffer.from(hex, 'hex'))];
    const text = bytes.map((byte) => byte.toString('latin1')).join(' ');
    pieces = [`deny 12 ${text.length}\n${text}`];
    const marks = invalid.map((hex) => (hex === 'e28241' ? '??A' : '?'.repeat(hex.length / 2)));
    assert.equal((await gate.call({ conf: GATED })).json()['msg'], [...characters, ...marks].join(' '));
  });

  it('control characters and quotes are escaped, other characters are not', async () => {
    const text = '\x00\x01\x1f\x20\x7e\x7f"\\/';
    pieces = [`deny 12 ${text.length}\n${text}`];
    const { stdout } = await gate.call({ conf: GATED });
    assert.ok(stdout.includes('"msg":"\\u0000\\u0001\\u001f ~\\u007f\\u0022\\u005c/"'), stdout);
  });

  it('a refusal right after the pass, in one piece: the delegate is not executed', async () => {
    const below = gate.delegate('unharmed', `printf '{}'`);
    pieces = ['allow\ndeny 12 5\nhello'];
    const outcome = await gate.outcome({ conf: { ...GATED, delegate: { type: 'unharmed' } } });
    assert.deepEqual(outcome, [1, 12, 'hello']);
    assert.doesNotMatch(below.verbs(), /ADD/);
  });

  it('a second pass, a wait and a refusal in one piece while the delegate runs: the delegate is cancelled', async () => {
    gate.delegate('held', '[ "$CNI_COMMAND" = DEL ] || sleep 600');
    pieces = ['allow\n', 'allow\nwait\ndeny 12 5\nhello'];
    const outcome = await gate.outcome({ conf: { ...GATED, delegate: { type: 'held' } } });
    assert.deepEqual(outcome, [1, 12, 'hello']);
  });

  for (const [name, piece] of [
    ['invalid text', 'nonsense\n'],
    ['65 bytes without a newline', 'x'.repeat(65)],
    ['the end of the connection', ''],
  ] as const) {
    it(`${name} while the delegate runs: it continues`, async () => {
      ends = piece === '';
      const short = gate.delegate('short', `sleep 0.5; printf '{}'`);
      const earlier = short.calls().length;
      pause = () => until('the delegate to start', () => short.calls().length > earlier);
      pieces = ['allow\n', piece];
      const result = await gate.call({ conf: { ...GATED, delegate: { type: 'short' } } });
      assert.equal(result.code, 0, result.stdout);
    });
  }
});
