import assert from 'node:assert/strict';
import { mock } from 'node:test';
import type { CniPod, DpuWord } from '../../../model/cni/decide.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { type AnswersDeps, createAnswers, type GatePolicy } from '../../../node-agent/gate/answers.ts';
import type { Question } from '../../../node-agent/gate/protocol.ts';
import { createAgentMetrics } from '../../../node-agent/telemetry/metrics.ts';
import { Registry } from '../../../runtime/metrics.ts';

const READY: DpuWord = { ready: true, reason: 'renewed' };
const DEAD: DpuWord = { ready: false, reason: 'not renewed' };
const UID = 'uid-1';

function stage(policy: Partial<GatePolicy> = {}, deps: Partial<AnswersDeps> = {}) {
  const registry = new Registry();
  const state: { dpu: DpuWord | undefined } = { dpu: READY };
  const vacated: string[] = [];
  const asked: CniPod[] = [];
  const answers = createAnswers({
    policy: { status: true, scope: 'all', exempt: ['kube-system'], ...policy },
    dpu: () => state.dpu,
    cpusOf: (uid) => (uid === UID ? CpuSet.parse('4-5') : CpuSet.EMPTY),
    vacate: async (cpus) => void vacated.push(cpus.toString()),
    hasDevice: async (pod) => {
      asked.push(pod);
      return undefined;
    },
    metrics: createAgentMetrics(registry),
    ...deps,
  });
  const shim = () => {
    const said: string[] = [];
    const leaving = new AbortController();
    return {
      said,
      leave: () => leaving.abort(),
      asker: {
        say: (frame: string | Buffer) => void said.push(`${frame}`),
        end: (frame: string | Buffer) => void said.push(`${frame} end`),
        gone: leaving.signal,
      },
    };
  };
  const question = (changes: Partial<Question> & { args?: string } = {}): Question => ({
    verb: 'ADD',
    environment: new Map([['CNI_ARGS', changes.args ?? 'K8S_POD_NAMESPACE=ns;K8S_POD_NAME=p;K8S_POD_UID=u0']]),
    conf: '{}',
    ...changes,
  });
  return {
    state,
    vacated,
    asked,
    answers,
    shim,
    question,
    /** Sends a request and does not wait for the answer. */
    begin(changes: Partial<Question> & { args?: string } = {}) {
      const one = shim();
      return { ...one, done: answers.answer(question(changes), one.asker) };
    },
    async ask(changes: Partial<Question> & { args?: string } = {}) {
      const one = shim();
      await answers.answer(question(changes), one.asker);
      return one;
    },
    async counted() {
      const lines = (await registry.metrics()).split('\n');
      return lines.filter((line) => /^plumbline_gate_(calls_total|seconds_(count|sum))/.test(line));
    },
  };
}

/** Work that ends when the test ends it. */
function work() {
  let finish = () => {};
  const done = new Promise<void>((resolve) => {
    finish = resolve;
  });
  return { done, finish };
}

/** Lets pending work reach its next wait. */
const turns = () => new Promise((resolve) => setImmediate(resolve));

const REFUSED = /^deny 11 \d+\n.*not renewed end$/s;

describe('the gate’s answers: ADD', () => {
  afterEach(() => mock.reset());

  it('keeps the connection open after allowing a delegate', async () => {
    const { ask } = stage();
    assert.deepEqual((await ask()).said, ['allow\n']);
  });

  it('refuses pods while the DPU is dead, except in exempt namespaces; without a DPU it allows all', async () => {
    const { ask, state } = stage();
    state.dpu = DEAD;
    assert.match((await ask()).said.join(), REFUSED);
    assert.deepEqual((await ask({ args: 'K8S_POD_NAMESPACE=kube-system' })).said, ['allow\n']);
    state.dpu = undefined;
    assert.deepEqual((await ask()).said, ['allow\n']);
  });

  it('vacates only the CPUs of the pod itself', async () => {
    const { ask, vacated } = stage();
    await ask({ args: `K8S_POD_UID=${UID}` });
    assert.deepEqual(vacated, ['4-5']);
    await ask({ args: 'K8S_POD_UID=other' });
    await ask({ args: '' });
    assert.deepEqual(vacated, ['4-5']);
  });

  it('refuses a pod without vacating CPUs', async () => {
    const { ask, vacated, state } = stage();
    state.dpu = DEAD;
    await ask({ args: `K8S_POD_UID=${UID}` });
    assert.deepEqual(vacated, []);
  });

  it('refuses with a retry and the reason if CPUs are not vacated in time', async () => {
    const { ask } = stage({}, { vacate: async () => Promise.reject(new Error('pmd stays')) });
    const { said } = await ask({ args: `K8S_POD_UID=${UID}` });
    assert.match(said.join(), /^deny 11 \d+\nOVS is still on CPUs 4-5: pmd stays end$/);
  });

  it('refuses if the DPU dies while CPUs are vacated', async () => {
    const vacate = async () => {
      one.state.dpu = DEAD;
    };
    const one = stage({}, { vacate });
    assert.match((await one.ask({ args: `K8S_POD_UID=${UID}` })).said.join(), REFUSED);
  });

  it('sends one wait request after 0.2 s', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const { done: vacated, finish } = work();
    const { said, done } = stage({}, { vacate: () => vacated }).begin({ args: `K8S_POD_UID=${UID}` });
    await turns();
    mock.timers.tick(199);
    assert.deepEqual(said, []);
    mock.timers.tick(1);
    assert.deepEqual(said, ['wait\n']);
    mock.timers.tick(10_000);
    finish();
    await done;
    assert.deepEqual(said, ['wait\n', 'allow\n']);
  });

  it('sends no wait request if the answer or the failure is faster', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const fast = await stage().ask({ args: `K8S_POD_UID=${UID}` });
    const vacate = async () => Promise.reject(new Error('no'));
    const refused = await stage({}, { vacate }).ask({ args: `K8S_POD_UID=${UID}` });
    mock.timers.tick(10_000);
    assert.deepEqual(fast.said, ['allow\n']);
    assert.equal(refused.said.length, 1);
  });
});

describe('the gate’s answers: ADD, for pods with a device only', () => {
  afterEach(() => mock.reset());

  it('asks the kubelet only if its answer matters', async () => {
    const one = stage({ scope: 'device' });
    await one.ask();
    assert.deepEqual(one.asked, [{ namespace: 'ns', name: 'p', uid: 'u0' }]);
    await one.ask({ args: 'K8S_POD_NAMESPACE=kube-system' });
    one.state.dpu = undefined;
    await one.ask();
    assert.equal(one.asked.length, 1);
    const all = stage();
    await all.ask();
    assert.deepEqual(all.asked, []);
  });

  for (const [has, isRefused] of [
    [true, true],
    [undefined, true],
    [false, false],
  ] as const) {
    it(`the kubelet answers ${has}: ${isRefused ? 'refused' : 'allowed'}`, async () => {
      const one = stage({ scope: 'device' }, { hasDevice: async () => has });
      one.state.dpu = DEAD;
      assert.equal(REFUSED.test((await one.ask()).said.join()), isRefused);
    });
  }

  const confs: [conf: string, isDevice: boolean][] = [
    ['{"deviceID": "0000:3b:00.2"}', true],
    ['{"runtimeConfig": {"deviceID": "0000:3b:00.2"}}', true],
    ['{"delegate": {"deviceID": "0000:3b:00.2"}}', true],
    ['{"deviceID": ""}', false],
    ['{"deviceID": 5}', false],
    ['{"runtimeConfig": null, "delegate": "x"}', false],
    ['{"other": {"deviceID": "0000:3b:00.2"}}', false],
    ['null', false],
    ['{', false],
  ];
  for (const [conf, isDevice] of confs) {
    it(`a configuration ${conf} ${isDevice ? 'has a device' : 'leaves the decision to the kubelet'}`, async () => {
      const one = stage({ scope: 'device' }, { hasDevice: async () => false });
      one.state.dpu = DEAD;
      assert.equal(REFUSED.test((await one.ask({ conf })).said.join()), isDevice);
    });
  }

  it('does not ask the kubelet if the configuration has a device', async () => {
    const one = stage({ scope: 'device' });
    await one.ask({ conf: confs[0]?.[0] ?? '' });
    assert.deepEqual(one.asked, []);
  });

  it('sends a wait request to the shim while the kubelet is slow', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const { done: answered, finish } = work();
    const { said, done } = stage({ scope: 'device' }, { hasDevice: () => answered.then(() => false) }).begin();
    await turns();
    mock.timers.tick(200);
    assert.deepEqual(said, ['wait\n']);
    finish();
    await done;
    assert.deepEqual(said, ['wait\n', 'allow\n']);
  });
});

describe('the gate’s answers: other verbs', () => {
  afterEach(() => mock.reset());

  it('refuses STATUS while the DPU is dead, if configured', async () => {
    const { ask, state } = stage();
    assert.deepEqual((await ask({ verb: 'STATUS' })).said, ['allow\n end']);
    state.dpu = DEAD;
    assert.match((await ask({ verb: 'STATUS' })).said.join(), /^deny 50 /);
    const off = stage({ status: false });
    off.state.dpu = DEAD;
    assert.deepEqual((await off.ask({ verb: 'STATUS' })).said, ['allow\n end']);
  });

  it('allows all other verbs, even while the DPU is dead, and closes the connection', async () => {
    const { ask, state, vacated } = stage();
    state.dpu = DEAD;
    for (const verb of ['DEL', 'CHECK', 'GC', 'VERSION'] as const) {
      assert.deepEqual((await ask({ verb, args: `K8S_POD_UID=${UID}` })).said, ['allow\n end']);
    }
    assert.deepEqual(vacated, []);
  });

  it('counts each answer by outcome, with its time', async () => {
    const one = stage();
    await one.ask();
    await one.ask({ verb: 'DEL' });
    one.state.dpu = DEAD;
    await one.ask();
    await one.ask({ verb: 'STATUS' });
    const lines = await one.counted();
    for (const expected of [
      'plumbline_gate_calls_total{verb="ADD",outcome="allowed"} 1',
      'plumbline_gate_calls_total{verb="DEL",outcome="allowed"} 1',
      'plumbline_gate_calls_total{verb="ADD",outcome="code-11"} 1',
      'plumbline_gate_calls_total{verb="STATUS",outcome="code-50"} 1',
      'plumbline_gate_seconds_count{verb="ADD"} 2',
    ])
      assert.ok(lines.includes(expected), `${expected} in\n${lines.join('\n')}`);
    assert.equal(lines.filter((line) => line.includes('_sum')).length, 3);
  });

  it('measures the time in seconds from the request to the answer', async () => {
    let now = 5000;
    mock.method(performance, 'now', () => now);
    const vacate = async () => {
      now += 120;
    };
    const one = stage({}, { vacate });
    await one.ask({ args: `K8S_POD_UID=${UID}` });
    assert.ok(
      (await one.counted()).includes('plumbline_gate_seconds_sum{verb="ADD"} 0.12'),
      String(await one.counted()),
    );
  });
});

describe('the gate’s answers: ADDs in progress', () => {
  it('cancels a running delegate once when the DPU dies', async () => {
    const one = stage();
    const first = await one.ask();
    const second = await one.ask();
    assert.equal(one.answers.recheck(), 0);
    one.state.dpu = DEAD;
    assert.equal(one.answers.recheck(), 2);
    assert.match(first.said[1] ?? '', REFUSED);
    assert.match(second.said[1] ?? '', REFUSED);
    assert.equal(one.answers.recheck(), 0);
    assert.ok((await one.counted()).includes('plumbline_gate_calls_total{verb="ADD",outcome="aborted"} 2'));
  });

  it('does not cancel an ADD whose shim has ended, one that ignores the DPU, or another verb', async () => {
    const one = stage();
    const gone = await one.ask();
    gone.leave();
    const left = one.shim();
    left.leave();
    await one.answers.answer(one.question(), left.asker);
    const others = [
      await one.ask({ args: 'K8S_POD_NAMESPACE=kube-system' }),
      await one.ask({ verb: 'DEL' }),
      await one.ask({ verb: 'STATUS' }),
    ];
    one.state.dpu = DEAD;
    assert.equal(one.answers.recheck(), 0);
    assert.deepEqual(
      [gone, left, ...others].map(({ said }) => said.length),
      [1, 1, 1, 1, 1],
    );
  });

  it('does not cancel the ADD of a pod without a device', async () => {
    const one = stage({ scope: 'device' }, { hasDevice: async ({ name }) => name === 'p' });
    const without = await one.ask({ args: 'K8S_POD_NAMESPACE=ns;K8S_POD_NAME=q' });
    const having = await one.ask();
    one.state.dpu = DEAD;
    assert.equal(one.answers.recheck(), 1);
    assert.deepEqual([without.said.length, having.said.length], [1, 2]);
  });
});
