import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { isObject, parseJson } from '../../model/json.ts';
import { type Question, QuestionReader } from '../../node-agent/gate/protocol.ts';
import { skipFor, skipWithout } from '../support/parts.ts';
import { GATED, type GateResult, useGate, writeState } from './gate-stage.ts';

/** Values in a configuration; JSON.parse decides which of them are JSON. */
const VALUES = [
  ...['0', '-0', '10', '907', '1.5', '0.0', '-1.25e+10', '1e5', '1E-5', '0e0', '1e05', '12.340'],
  ...['01', '-01', '1.', '.5', '-', '+1', '1e', '1e+', '1e-', '1.e5', '1.5.2', '0x1', '1/', '1:', '-a', '00', '--1'],
  ...['true', 'false', 'null', 'tru', 'truex', 'fals', 'falsy', 'nul', 'nulL', 'True', 'undefined', 't', ''],
  ...['""', '"a"', '"é€😀"', '"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\u00e9\\uABCD\\u0f9a"', '"\x7f"', '"a', 'a"', '"\\"'],
  ...["'a'"],
  ...['/', ':', '@', 'G', '`', 'g'].map((one) => `"\\u00${one}0"`),
  ...['"\\u"', '"\\u12"', '"\\u123"', '"\\u123g"', '"\\x"', '"\\a"', '"\\0"', '"\\', '"\\\x00"', '"\t"', '"\n"'],
  ...['"\x1f"', '"\x00"', '" "'],
  ...['[]', '[ ]', '[1]', '[ 1 , 2 ]', '[[],[[]]]', '[\t1\n,\r2 ]', '[1,]', '[,]', '[,1]', '[1 2]', '[1', '[', ']'],
  ...['[1}', '[1,,2]', '[01]'],
  ...['{}', '{ }', '{"a":1}', '{ "a" : 1 , "b" : [ ] }', '{"a":{"b":{}}}', '{\n"a"\t:\r1}', '{"a":1,}', '{,}'],
  ...['{"a"}', '{"a":}'],
  ...['{"a" 1}', '{a:1}', '{"a":1 "b":2}', '{"a":1', '{', '}', '{"a":1]', '{1:2}', '{"a":1,,"b":2}', '{"a"::1}'],
  ...['{"a\\x":1}'],
  ...['1 2', '"a" "b"', '\u00a01', '1\f', '\v1', '[] []', '{}1'],
];

/** Complete configurations; `@` is `GATED`. */
const TEXTS = [
  ...['@', ' @', '@ ', '\n\t\r @ \r\n\t', '\f@', '@\f', '@@', '@,', '@}', '[@]', '"@"', 'null', '1', '', ' ', '{'],
  ...['{}x', '\ufeff@'],
];

const VARIABLES = ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME', 'CNI_PATH'];
const missing = (names: readonly string[]) => [1, 4, `required env variables [${names.join(',')}] missing`];
const passed = [0, undefined, undefined];

describe('the CNI plugin, case by case', () => {
  const gate = useGate();

  it('accepts only a JSON object, and fails with code 6 otherwise', async () => {
    const whole = TEXTS.map((text) => text.replaceAll('@', JSON.stringify(GATED)));
    const within = VALUES.map((value) => `{"cniVersion":"1.1.0","name":"n","x":${value},"delegate":{"type":"pass"}}`);
    for (const text of [...whole, ...within]) {
      const [status, code] = await gate.outcome({ conf: text });
      assert.deepEqual([status, code], isObject(parseJson(text)) ? [0, undefined] : [1, 6], JSON.stringify(text));
    }
  });

  it('accepts up to 255 levels in the configuration', async () => {
    const start = JSON.stringify(GATED).slice(0, -1);
    const nested = (levels: number) => `${start},"x":${'['.repeat(levels)}${']'.repeat(levels)}}`;
    assert.equal((await gate.call({ conf: nested(255) })).code, 0);
    assert.equal((await gate.call({ conf: nested(256) })).json()['code'], 6);
  });

  it('uses the last of two members with one name, and ignores nested ones', async () => {
    const twice =
      '{"cniVersion":"9","cniVersion":"1.0.0","delegate":{"type":"no/name"},"delegate":{"type":"pass"},"name":"n"}';
    const { code, json } = await gate.call({ conf: twice });
    assert.deepEqual([code, json()], [0, { cniVersion: '1.1.0' }]);
    assert.deepEqual(await gate.outcome({ conf: { ...GATED, x: { cniVersion: '9', delegate: 1 } } }), passed);
  });

  describe('requirements of a verb', () => {
    const NEEDED: Record<string, string[]> = {
      ADD: VARIABLES,
      DEL: ['CNI_CONTAINERID', 'CNI_IFNAME', 'CNI_PATH'],
      CHECK: VARIABLES,
      GC: ['CNI_PATH'],
      STATUS: ['CNI_PATH'],
      VERSION: [],
    };
    for (const [verb, needed] of Object.entries(NEEDED)) {
      it(`${verb}: ${needed.join(', ') || 'nothing'}`, async () => {
        for (const name of VARIABLES) {
          for (const value of [undefined, '']) {
            const outcome = await gate.outcome({ verb, conf: GATED, environment: { [name]: value } });
            assert.deepEqual(outcome, needed.includes(name) ? missing([name]) : passed, name);
          }
        }
        const environment = Object.fromEntries(VARIABLES.map((name) => [name, undefined]));
        const outcome = await gate.outcome({ verb, conf: GATED, environment });
        assert.deepEqual(outcome, needed.length === 0 ? passed : missing(needed));
      });
    }

    it('a verb: a missing, unknown or partial one is refused', async () => {
      for (const command of [undefined, '']) {
        const outcome = await gate.outcome({ conf: GATED, environment: { CNI_COMMAND: command } });
        assert.deepEqual(outcome, missing(['CNI_COMMAND']));
      }
      for (const verb of ['AD', 'ADDX', 'add', 'x'.repeat(80), 'x'.repeat(81)]) {
        const displayed = verb.length > 80 ? `${verb.slice(0, 80)}...` : verb;
        assert.deepEqual(await gate.outcome({ verb, conf: GATED }), [1, 4, `unknown CNI_COMMAND: ${displayed}`]);
      }
    });

    const VERSIONS = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'];
    for (const [verb, least] of Object.entries({ CHECK: '0.4.0', GC: '1.1.0', STATUS: '1.1.0', DEL: '0.3.0' })) {
      it(`${verb} is allowed from version ${least} on`, async () => {
        for (const cniVersion of VERSIONS) {
          const { code, stdout } = await gate.call({ verb, conf: { ...GATED, cniVersion } });
          const refusal = JSON.stringify({ cniVersion, code: 1, msg: `config version does not allow ${verb}` });
          assert.deepEqual([code, stdout.trim()], cniVersion >= least ? [0, ''] : [1, refusal], cniVersion);
        }
      });
    }

    it('a version: unsupported ones are refused in the newest supported one, except for VERSION', async () => {
      for (const cniVersion of ['0.2.0', '1.1.1', '1.1', '', 'x', undefined]) {
        const { cniVersion: version, code, msg } = (await gate.call({ conf: { ...GATED, cniVersion } })).json();
        assert.deepEqual([version, code], ['1.1.0', 1]);
        assert.ok(String(msg).endsWith(`the configuration says "${cniVersion ?? ''}"`), String(msg));
        assert.equal((await gate.call({ verb: 'VERSION', conf: { ...GATED, cniVersion } })).code, 0);
      }
    });
  });

  describe('a delegate', () => {
    const wrapped = (delegate: unknown, more = {}) => ({ ...GATED, cniVersion: '1.0.0', ...more, delegate });

    it('is a plugin with a plain file name', async () => {
      const refusal = async (delegate: unknown) => (await gate.outcome({ conf: wrapped(delegate) })).join(' ');
      for (const type of ['', '.', '..', 'a/b', '/', 'x'.repeat(256), 5, undefined])
        assert.match(await refusal({ type }), /^1 7 "type" of the delegate must be the name of a plugin, not "/);
      for (const type of ['...', '.a', 'x'.repeat(255)])
        assert.equal(await refusal({ type }), `1 7 plumbline-gate: ${type} is in no directory of CNI_PATH`);
      for (const delegate of [undefined, 5, 'x', [], null, true])
        assert.match(await refusal(delegate), /^1 7 "delegate" must be an object/);
    });

    it('gets its object with the runtime’s values, which replace its own', async () => {
      const below = gate.delegate('conf', `printf '{}'`);
      const own = { type: 'conf', cniVersion: '9', name: 'own', prevResult: 1, runtimeConfig: 2, args: 3, mtu: 9000 };
      const valid = { 'cni.dev/valid-attachments': [1] };
      const runtimeValues = {
        args: { c: 3 },
        runtimeConfig: { b: 2 },
        prevResult: { a: 1 },
        'cni.dev/valid-attachments': [],
      };
      await gate.call({ conf: { cniVersion: '1.0.0', type: 'plumbline-gate', delegate: { ...own, ...valid } } });
      await gate.call({ conf: wrapped({ ...own, ...valid }, runtimeValues) });
      const [alone, replaced] = below.calls().map(({ conf }) => conf);
      const common = { cniVersion: '1.0.0', type: 'conf', mtu: 9000 };
      assert.deepEqual(alone, { ...common, name: 'own', runtimeConfig: 2, args: 3 });
      assert.deepEqual(replaced, { ...common, name: 'net', ...runtimeValues });
    });

    it('is the first executable file of its name on CNI_PATH', async () => {
      const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => join(gate.directory, `path-${name}`));
      mkdirSync(join(a!, 'found'), { recursive: true });
      for (const [directory, mode] of [
        [b, 0o644],
        [c, 0o755],
        [d, 0o755],
      ] as const) {
        mkdirSync(directory!);
        const text = `#!/bin/sh\ncat >/dev/null\nprintf '{"${directory === c ? 'c' : 'other'}":1}'`;
        writeFileSync(join(directory!, 'found'), text, { mode });
      }
      const call = (path: string) => gate.call({ conf: wrapped({ type: 'found' }), environment: { CNI_PATH: path } });
      for (const path of [`${a}:${b}:${c}:${d}`, `::${c}:${d}`, `${c}:`, `/nowhere:${c}`, `${'x'.repeat(5000)}:${c}`]) {
        assert.deepEqual((await call(path)).json(), { c: 1 }, path.slice(0, 100));
      }
      for (const path of [`${a}:${b}`, ':', `${c}x`]) assert.equal((await call(path)).json()['code'], 7, path);
    });

    it('gets DEL after a failed ADD, with ignored output, in its own environment', async () => {
      const below = gate.delegate('failing', `echo "loud $CNI_COMMAND" >&2; printf '{"code":99}'; exit 3`);
      const { code, json, stderr } = await gate.call({ conf: wrapped({ type: 'failing' }) });
      assert.deepEqual([code, json(), stderr, below.verbs()], [3, { code: 99 }, 'loud ADD\n', 'ADD,DEL']);
    });

    it('is named with the signal that killed it', async () => {
      gate.delegate('killed', 'kill -15 $$');
      const outcome = await gate.outcome({ verb: 'DEL', conf: wrapped({ type: 'killed' }) });
      assert.deepEqual(outcome.slice(1), [999, 'plumbline-gate: killed was ended by signal 15']);
    });
  });

  describe('the state file', () => {
    const DEAD = { dpu: 'not-ready', reason: 'why', status: true };
    const later = [1, 11, 'DPU Not Ready: why'];
    const unavailable = [1, 50, 'DPU Not Ready: why'];
    const outcome = (verb: string) => gate.outcome({ verb, conf: GATED });

    const cases: [name: string, state: object, add: unknown[], status: unknown[]][] = [
      ['dead', DEAD, later, unavailable],
      ['dead, without a refusal of STATUS', { ...DEAD, status: false }, later, passed],
      ['dead, without a setting for STATUS', { ...DEAD, status: undefined }, later, passed],
      ['alive', { ...DEAD, dpu: 'ready' }, passed, passed],
      ['of a node without a DPU', { ...DEAD, dpu: 'none' }, passed, passed],
      ['with another value', { ...DEAD, dpu: 'not-readyx' }, passed, passed],
      ['without a reason', { ...DEAD, reason: '' }, [1, 11, 'DPU Not Ready: '], [1, 50, 'DPU Not Ready: ']],
      ['of scope all', { ...DEAD, scope: 'all' }, later, unavailable],
      ['of scope device', { ...DEAD, scope: 'device' }, passed, unavailable],
      ['an exempt namespace', { ...DEAD, exempt: ['default'] }, passed, unavailable],
      ['of an unknown time', { ...DEAD, at: undefined }, passed, passed],
    ];
    for (const [name, state, add, status] of cases) {
      it(`${name}: ADD ${add[0] === 0 ? 'passes' : 'is refused'}, STATUS ${status[0] === 0 ? 'passes' : 'is refused'}`, async () => {
        writeState(gate.state, state);
        assert.deepEqual([await outcome('ADD'), await outcome('STATUS')], [add, status]);
        for (const verb of ['DEL', 'CHECK', 'GC']) assert.deepEqual(await outcome(verb), passed, verb);
      });
    }

    it('is ignored with an invalid or future time, torn or missing', async () => {
      for (const at of ['"1"', '-1', '1.5', '1e3', '999999999999999', '1000000000000000', '01', 'null']) {
        writeFileSync(gate.state, `{"dpu":"not-ready","reason":"why","status":true,"at":${at}}`);
        assert.deepEqual([await outcome('ADD'), await outcome('STATUS')], [passed, passed], at);
      }
      writeFileSync(gate.state, '{"dpu":"not-ready","at":1');
      assert.deepEqual(await outcome('ADD'), passed, 'torn');
      rmSync(gate.state);
      assert.deepEqual(await outcome('ADD'), passed, 'missing');
    });

    it('says how long the agent has not answered, and ends after a day without one', async function () {
      const now = Number(process.hrtime.bigint() / 1_000_000n);
      writeState(gate.state, { ...DEAD, at: now - 120_000 });
      const [, , message] = await outcome('ADD');
      assert.match(String(message), /^DPU Not Ready: why; the node agent has not answered for 1[2-9]\d s$/);
      const wrapper = (seconds: number) => ['unshare', '--time', '--monotonic', String(seconds)];
      if (spawnSync('unshare', [...wrapper(1).slice(1), 'true']).status !== 0)
        return skipFor({ name: 'time namespaces that this process may make', install: 'run as root' }, this);
      writeState(gate.state, DEAD);
      const codes = [86_000, 86_400].map(async (age) => (await gate.call({ conf: GATED, wrapper: wrapper(age) })).code);
      assert.deepEqual(await Promise.all(codes), [1, 0]);
    });

    it('exempts namespaces by full name or prefix only', async () => {
      const lists: [exempt: unknown, passes: boolean][] = [
        [['default'], true],
        [['defaul'], false],
        [['defaults'], false],
        [['*'], true],
        [['default*'], true],
        [['defaults*'], false],
        [[''], false],
        ['default', false],
        [{ default: 1 }, false],
        [[1, null, ['default'], { a: 'default' }], false],
        [[1, { a: [1, 2] }, 'default'], true],
      ];
      for (const [exempt, passes] of lists) {
        writeState(gate.state, { ...DEAD, exempt });
        assert.deepEqual(await outcome('ADD'), passes ? passed : later, JSON.stringify(exempt));
      }
      // With blanks, as only a person writes it.
      writeFileSync(gate.state, '{"dpu":"not-ready","reason":"why","at":1,"exempt" : [ "a" , "default" ] }');
      assert.deepEqual(await outcome('ADD'), passed);
    });

    it('exempts the namespace of CNI_ARGS, in any place; without a namespace nothing is exempt', async () => {
      const args: [text: string | undefined, passes: boolean, exempt?: string[]][] = [
        ['K8S_POD_NAMESPACE=kube-system', true],
        ['A=b;K8S_POD_NAMESPACE=kube-system;C=d', true],
        ['K8S_POD_NAMESPACE=kube-systemx', false],
        ['XK8S_POD_NAMESPACE=kube-system', false],
        ['K8S_POD_NAMESPACE=', false],
        ['K8S_POD_NAMESPACE', false],
        ['', false],
        [undefined, false],
        ['K8S_POD_NAMESPACE=;K8S_POD_NAMESPACE=kube-system', false],
        // The first is the runtime's own.
        ['K8S_POD_NAMESPACE=default;K8S_POD_NAMESPACE=kube-system', false],
        ['K8S_POD_NAMESPACE=', false, ['*']],
        ['', false, ['*']],
      ];
      for (const [text, passes, exempt = ['kube-system', '*x']] of args) {
        writeState(gate.state, { ...DEAD, exempt });
        const { code } = await gate.call({ conf: GATED, environment: { CNI_ARGS: text } });
        assert.equal(code, passes ? 0 : 1, text);
      }
    });

    it('applies to a device of the configuration, the runtime or the delegate', async () => {
      writeState(gate.state, { ...DEAD, scope: 'device' });
      gate.delegate('dev', `printf '{}'`);
      const confs: [conf: object, isRefused: boolean][] = [
        ...['x', 1].flatMap((deviceID): [object, boolean][] => [
          [{ deviceID }, true],
          [{ runtimeConfig: { deviceID } }, true],
          [{ delegate: { type: 'dev', deviceID } }, true],
        ]),
        [{ delegate: { type: 'dev' } }, false],
        [{ runtimeConfig: { device: 'x' } }, false],
        [{ runtimeConfig: ['deviceID'] }, false],
        [{ args: { deviceID: 'x' } }, false],
      ];
      for (const [conf, isRefused] of confs) {
        const { code } = await gate.call({ conf: { ...GATED, ...conf } });
        assert.equal(code, isRefused ? 1 : 0, JSON.stringify(conf));
      }
    });

    it('is read up to its maximum size; a larger file or one that others may write is ignored', async () => {
      for (const [size, mode, code] of [
        [16_383, 0o644, 1],
        [16_384, 0o644, 0],
        [100, 0o600, 1],
        [100, 0o664, 0],
        [100, 0o646, 0],
      ] as const) {
        const begun = '{"dpu":"not-ready","at":1,"x":"';
        writeFileSync(gate.state, `${begun}${'x'.repeat(size - begun.length - 2)}"}`);
        chmodSync(gate.state, mode);
        assert.equal((await outcome('ADD'))[0], code, `${size} bytes, ${mode.toString(8)}`);
      }
    });
  });

  describe('a request to the agent', () => {
    let server: Server;
    let directory: string;
    let question: Question | undefined;
    before(async () => {
      directory = join(gate.directory, 'other');
      mkdirSync(directory);
      server = createServer((socket) => {
        const reader = new QuestionReader();
        socket.on('error', () => undefined);
        socket.on('data', (chunk) => {
          question = reader.read(chunk);
          if (question !== undefined) socket.end('deny 27 4\nsaid');
        });
      }).listen(join(directory, 'gate.sock'));
      await once(server, 'listening');
    });
    after(() => server?.close());
    const here = () => ({ PLUMBLINE_RUN_DIR: directory });
    const codeOf = async (runDir: string) =>
      (await gate.outcome({ conf: GATED, environment: { PLUMBLINE_RUN_DIR: runDir } }))[1];

    it('goes to the socket in the agent’s directory, and without an answer its state file there decides', async () => {
      assert.equal(await codeOf(directory), 27);
      const alone = join(gate.directory, 'alone');
      mkdirSync(alone);
      writeState(join(alone, 'gate.state'), { dpu: 'not-ready', reason: 'why' });
      assert.equal(await codeOf(alone), 11);
      assert.equal(await codeOf(gate.directory), undefined);
    });

    it('ignores a directory that is relative, or too long for the path of a socket', async function () {
      skipWithout('strace', this);
      const padded = (length: number) => `${directory}/${'./'.repeat(100)}`.slice(0, length - 1).padEnd(length, '/');
      const longest = 107 - '/gate.state'.length;
      writeState(join(directory, 'gate.state'), { dpu: 'not-ready', reason: 'why' });
      assert.equal(await codeOf(padded(longest)), 27);
      const connected = ({ calls }: GateResult) => calls.find(({ name }) => name === 'connect')?.args ?? '';
      const DEFAULT = /"\/run\/plumbline\/gate\.sock"/;
      const long = { PLUMBLINE_RUN_DIR: padded(longest + 2) };
      assert.match(connected(await gate.call({ conf: GATED, environment: long, faults: [] })), DEFAULT);
      const relative = await gate.call({ conf: GATED, environment: { PLUMBLINE_RUN_DIR: 'other' }, faults: [] });
      assert.match(connected(relative), DEFAULT);
    });

    it('has the verb, the variables of CNI and the configuration', async () => {
      const names = ['CNI_COMMAND', 'CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME', 'CNI_PATH', 'CNI_ARGS'];
      for (const verb of ['ADD', 'STATUS']) {
        await gate.call({ verb, conf: GATED, environment: { ...here(), XCNI_A: 'b', CNIX: 'c' } });
        assert.deepEqual([question?.verb, question?.conf], [verb, JSON.stringify(GATED)]);
        assert.deepEqual([...(question?.environment.keys() ?? [])].sort(), names.sort());
      }
    });

    it('is not sent for DEL, CHECK, GC and VERSION', async () => {
      for (const verb of ['DEL', 'CHECK', 'GC', 'VERSION']) {
        question = undefined;
        assert.equal((await gate.call({ verb, conf: GATED, environment: here() })).code, 0);
        assert.equal(question, undefined, verb);
      }
    });
  });
});
