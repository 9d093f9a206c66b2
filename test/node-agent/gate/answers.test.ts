import assert from 'node:assert/strict';
import { join } from 'node:path';
import { mock } from 'node:test';
import type { PodResourcesClient } from '../../../kube/kubelet-api/pod-resources-client.ts';
import type { CniPod, DpuWord } from '../../../model/cni/decide.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { Assignments } from '../../../node-agent/assignments/assignments.ts';
import { cpusOfPod } from '../../../node-agent/assignments/view.ts';
import { DeviceQuestions, GateAnswers } from '../../../node-agent/gate/answers.ts';
import type { Question } from '../../../node-agent/gate/protocol.ts';
import { createAgentMetrics } from '../../../node-agent/telemetry/metrics.ts';
import { Registry } from '../../../runtime/metrics.ts';
import { recordingLogger, replaceFile, tempDirectories, turns, useDuties } from '../support.ts';

type AnswersDeps = ConstructorParameters<typeof GateAnswers>[0];

const READY: DpuWord = { ready: true, reason: 'renewed' };
const DEAD: DpuWord = { ready: false, reason: 'not renewed' };
const UID = 'uid-1';
const OWNER = { args: `K8S_POD_UID=${UID}` };
type Asked = Partial<Question> & { readonly args?: string };

function stage(policy: Partial<AnswersDeps['policy']> = {}, deps: Partial<AnswersDeps> = {}) {
  const registry = new Registry();
  const state: { dpu: DpuWord | undefined } = { dpu: READY };
  const vacated: string[] = [];
  const requests: CniPod[] = [];
  const answers = new GateAnswers({
    policy: { status: true, scope: 'all', exempt: ['kube-system'], ...policy },
    dpu: () => state.dpu,
    cpusOf: (uid) => (uid === UID ? CpuSet.parse('4-5') : CpuSet.EMPTY),
    vacate: async (cpus) => void vacated.push(cpus.toString()),
    hasDevice: async (pod) => {
      requests.push(pod);
      return undefined;
    },
    metrics: createAgentMetrics(registry),
    ...deps,
  });
  const shim = () => {
    const messages: string[] = [];
    const leaving = new AbortController();
    return {
      messages,
      leave: () => leaving.abort(),
      asker: {
        send: (frame: string | Buffer) => void messages.push(`${frame}`),
        end: (frame: string | Buffer) => void messages.push(`${frame} end`),
        gone: leaving.signal,
      },
    };
  };
  return {
    state,
    vacated,
    requests,
    answers,
    shim,
    async ask(
      { args = 'K8S_POD_NAMESPACE=ns;K8S_POD_NAME=p;K8S_POD_UID=u0', ...changes }: Asked = {},
      caller = shim(),
    ) {
      const environment = new Map([['CNI_ARGS', args]]);
      await answers.answer({ verb: 'ADD', environment, conf: '{}', ...changes }, caller.asker);
      return caller;
    },
    metrics: () => registry.metrics(),
  };
}

function withResolvers() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve: () => resolve() };
}

const REFUSED = /^deny 11 \d+\n.*not renewed end$/s;

describe('the gate’s answers: ADD', () => {
  afterEach(() => mock.reset());

  it('refuses pods while the DPU is dead, without a vacate, except in exempt namespaces', async () => {
    const { ask, state, vacated } = stage();
    state.dpu = DEAD;
    assert.match((await ask(OWNER)).messages.join(), REFUSED);
    assert.deepEqual(vacated, []);
    assert.deepEqual((await ask({ args: 'K8S_POD_NAMESPACE=kube-system' })).messages, ['allow\n']);
  });

  it('vacates only the CPUs of the pod itself', async () => {
    const { ask, vacated } = stage();
    await ask(OWNER);
    assert.deepEqual(vacated, ['4-5']);
    await ask({ args: 'K8S_POD_UID=other' });
    await ask({ args: '' });
    assert.deepEqual(vacated, ['4-5']);
  });

  it('refuses with a retry and the reason if CPUs are not vacated in time', async () => {
    const { ask } = stage({}, { vacate: async () => Promise.reject(new Error('pmd stays')) });
    const { messages } = await ask(OWNER);
    assert.match(messages.join(), /^deny 11 \d+\nCPUs 4-5 are not clear yet: pmd stays end$/);
  });

  it('refuses if the DPU dies while CPUs are vacated', async () => {
    const vacate = async () => {
      scene.state.dpu = DEAD;
    };
    const scene = stage({}, { vacate });
    assert.match((await scene.ask(OWNER)).messages.join(), REFUSED);
  });

  it('sends one wait request after 0.2 s', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const { promise: vacated, resolve: finish } = withResolvers();
    const { ask, shim } = stage({}, { vacate: () => vacated });
    const caller = shim();
    const { messages } = caller;
    const done = ask(OWNER, caller);
    await turns();
    mock.timers.tick(199);
    assert.deepEqual(messages, []);
    mock.timers.tick(1);
    assert.deepEqual(messages, ['wait\n']);
    mock.timers.tick(10_000);
    finish();
    await done;
    assert.deepEqual(messages, ['wait\n', 'allow\n']);
  });
});

describe('the gate’s answers: ADD, for pods with a device only', () => {
  const confs: [conf: string, isDevice: boolean][] = [
    ['{"deviceID": "0000:3b:00.2"}', true],
    ['{"runtimeConfig": {"deviceID": "0000:3b:00.2"}}', true],
    ['{"delegate": {"deviceID": "0000:3b:00.2"}}', true],
    ['{"deviceID": ""}', false],
    ['{"runtimeConfig": null, "delegate": "x"}', false],
    ['{"other": {"deviceID": "0000:3b:00.2"}}', false],
    ['{', false],
  ];

  it('asks the kubelet only if its answer matters', async () => {
    const scene = stage({ scope: 'device' });
    await scene.ask();
    assert.deepEqual(scene.requests, [{ namespace: 'ns', name: 'p', uid: 'u0' }]);
    await scene.ask({ args: 'K8S_POD_NAMESPACE=kube-system' });
    await scene.ask({ conf: confs[0]?.[0] ?? '' });
    scene.state.dpu = undefined;
    await scene.ask();
    assert.equal(scene.requests.length, 1);
    const all = stage();
    await all.ask();
    assert.deepEqual(all.requests, []);
  });

  it('a configuration with a device decides, otherwise the kubelet', async () => {
    const scene = stage({ scope: 'device' }, { hasDevice: async () => false });
    scene.state.dpu = DEAD;
    for (const [conf, isDevice] of confs) {
      assert.equal(REFUSED.test((await scene.ask({ conf })).messages.join()), isDevice, conf);
    }
  });
});

describe('the gate’s answers: other verbs', () => {
  it('allows all other verbs, even while the DPU is dead, and closes the connection', async () => {
    const { ask, state, vacated } = stage();
    state.dpu = DEAD;
    for (const verb of ['DEL', 'CHECK', 'GC', 'VERSION'] as const) {
      assert.deepEqual((await ask({ verb, args: `K8S_POD_UID=${UID}` })).messages, ['allow\n end']);
    }
    assert.deepEqual(vacated, []);
  });

  it('counts each answer by outcome', async () => {
    const scene = stage();
    await scene.ask(OWNER);
    await scene.ask({ verb: 'DEL' });
    scene.state.dpu = DEAD;
    await scene.ask();
    await scene.ask({ verb: 'STATUS' });
    const metrics = await scene.metrics();
    assert.match(metrics, /^plumbline_gate_calls_total{verb="ADD",outcome="allowed"} 1$/m);
    assert.match(metrics, /^plumbline_gate_calls_total{verb="STATUS",outcome="code-50"} 1$/m);
    assert.match(metrics, /^plumbline_gate_seconds_count{verb="ADD"} 2$/m);
  });
});

describe('the gate’s answers: ADDs in progress', () => {
  it('cancels a running delegate once when the DPU dies', async () => {
    const scene = stage();
    const callers = [await scene.ask(), await scene.ask()];
    assert.equal(scene.answers.recheck(), 0);
    scene.state.dpu = DEAD;
    assert.deepEqual([scene.answers.recheck(), scene.answers.recheck()], [2, 0]);
    for (const { messages } of callers) assert.match(messages[1] ?? '', REFUSED);
    assert.match(await scene.metrics(), /^plumbline_gate_calls_total{verb="ADD",outcome="aborted"} 2$/m);
  });

  it('does not cancel an ADD whose shim has ended, one that ignores the DPU, or another verb', async () => {
    const scene = stage();
    const gone = await scene.ask();
    gone.leave();
    const left = scene.shim();
    left.leave();
    const callers = [gone, await scene.ask({}, left)];
    for (const changes of [{ args: 'K8S_POD_NAMESPACE=kube-system' }, { verb: 'DEL' }, { verb: 'STATUS' }] as const)
      callers.push(await scene.ask(changes));
    scene.state.dpu = DEAD;
    assert.equal(scene.answers.recheck(), 0);
    for (const { messages } of callers) assert.equal(messages.length, 1);
  });

  it('does not cancel the ADD of a pod without a device', async () => {
    const scene = stage({ scope: 'device' }, { hasDevice: async ({ name }) => name === 'p' });
    const without = await scene.ask({ args: 'K8S_POD_NAMESPACE=ns;K8S_POD_NAME=q' });
    const having = await scene.ask();
    scene.state.dpu = DEAD;
    assert.equal(scene.answers.recheck(), 1);
    assert.deepEqual([without.messages.length, having.messages.length], [1, 2]);
  });
});

describe('facts of the gate about a pod: its CPUs', () => {
  const temp = tempDirectories();
  const start = useDuties();

  it('are from the kubelet’s latest write without its notice, and the last known ones while the file is torn', async () => {
    const kubeletDir = temp();
    const write = (text: string) => replaceFile(join(kubeletDir, 'cpu_manager_state'), text);
    const checkpoint = (entries: object) =>
      JSON.stringify({ policyName: 'static', defaultCpuSet: '0', entries, checksum: 1 });
    const assignments = new Assignments({
      kubeletDir,
      cdiDir: temp(),
      online: () => CpuSet.parse('0-7'),
      log: recordingLogger().log,
      onFailure: () => undefined,
    });
    const cpusOf = (uid: string) => cpusOfPod(assignments.readNow(), uid).toString();
    write(checkpoint({ 'uid-1': { a: '2', b: '4-5' }, 'uid-2': { a: '3' } }));
    assert.equal(cpusOf('uid-1'), '', 'before the duty runs');
    start(assignments);
    assert.deepEqual([cpusOf('uid-1'), cpusOf('uid-3')], ['2,4-5', '']);
    write(checkpoint({ 'uid-1': { a: '6' } }));
    assert.deepEqual([cpusOf('uid-1'), cpusOf('uid-2')], ['6', '']);
    write('{"policyName":"static","defau');
    assert.equal(cpusOf('uid-1'), '6');
  });
});

describe('facts of the gate about a pod: its devices', () => {
  const client = (...resources: string[]) => {
    const devices = resources.map((resourceName) => ({ resourceName, deviceIds: ['x'], numaNodes: [] }));
    const list = async () => [{ namespace: 'a', name: 'vm', containers: [{ name: 'main', cpuIds: [], devices }] }];
    return { list } as unknown as Pick<PodResourcesClient, 'list'>;
  };
  const ask = (from: Pick<PodResourcesClient, 'list'>, name = 'vm') =>
    new DeviceQuestions(from).hasDevice({ namespace: 'a', name, uid: 'u' });

  it('count a device of the DPU, but not Plumbline’s resources', async () => {
    assert.equal(await ask(client('plumbline.dev/tunnel', 'nvidia.com/bf3')), true);
    assert.equal(await ask(client('plumbline.dev/tunnel', 'physnet.plumbline.dev/a')), false);
  });

  it('are asked with a few calls for hundreds of pods, and asked again after the answers', async () => {
    let requests = 0;
    const { promise: answered, resolve: answer } = withResolvers();
    const { list } = client('nvidia.com/bf3');
    const slow = async () => {
      requests++;
      await answered;
      return list();
    };
    const questions = new DeviceQuestions({ list: slow });
    const pod = { namespace: 'a', name: 'vm', uid: 'u' };
    const all = Array.from({ length: 500 }, () => questions.hasDevice(pod));
    await turns();
    assert.equal(requests, 16);
    answer();
    const devices = await Promise.all(all);
    assert.deepEqual(devices, [...Array(16).fill(true), ...Array(484).fill(undefined)]);
    assert.equal(await questions.hasDevice(pod), true);
  });

  it('are unknown if the kubelet does not know the pod or does not answer', async () => {
    assert.equal(await ask(client('nvidia.com/bf3'), 'other'), undefined);
    const silent = { list: () => Promise.reject(new Error('deadline')) };
    assert.equal(await ask(silent as Pick<PodResourcesClient, 'list'>), undefined);
  });
});
