import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { createTerminalLog } from '../../cli/console/run.ts';
import { createPrinter } from '../../cli/demo/printer.ts';
import { createProgram, runProgram } from '../../cli/program.ts';
import { createProgress, print } from '../../cli/support/output.ts';
import { watch } from '../../cli/support/watch.ts';
import { KubeError } from '../../kube/client.ts';
import { createObjectsApi, type Objects } from '../cli/objects-api-stand-in.ts';
import { buildCli, plumbline } from '../cli/run.ts';
import { NOW, STATE_TABLE } from '../diagnosis/state-table-fixture.ts';
import { root } from '../support/bundles.ts';
import { tempDirectories } from '../support/files.ts';
import { kubeconfigOf } from '../support/kubeconfig.ts';
import { listenOnLoopback } from '../support/processes.ts';
import {
  HOSTILE,
  LONG,
  strangeIn,
  textPaths,
  withEachText,
  withEveryText,
  withTexts,
} from './hostile-texts-fixture.ts';

/** Bytes that a command may print about one VM and one node, if texts of others are long. */
const MAX_OUTPUT_BYTES = 64 * 1024;

const OWNED = { podUID: 'pod-uid', namespace: 'tenants', podName: 'virt-launcher-fw-abcde', container: 'compute' };
const NAD =
  '{"cniVersion":"1.0.0","name":"fast","type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"tenants/fast"}';
const IN_SYSTEM = { namespace: 'plumbline-system' };
const IMAGE = 'registry.example.com/plumbline:0.1.0';
const webhooks = (name: string) => {
  const clientConfig = { service: { name: 'plumbline-webhook', ...IN_SYSTEM }, caBundle: 'eA==' };
  const rules = [{ apiGroups: [''], resources: ['pods'], operations: ['CREATE'] }];
  const entry = { name: `${name}.plumbline.dev`, clientConfig, failurePolicy: 'Fail', rules };
  return [{ metadata: { name: `plumbline-${name}` }, webhooks: [entry] }];
};
const inSystem = (name: string, more: object = {}) => ({ name, ...IN_SYSTEM, ...more });
const DPU_LABELS = { 'k8s.ovn.org/dpu-host': '', 'kubevirt.io/schedulable': 'true' };
const DPU_READY = { type: 'plumbline.dev/DPUReady', status: 'False', reason: 'Dead', message: 'no renewal' };
const AGENT = {
  labels: { 'app.kubernetes.io/name': 'plumbline-node-agent' },
  annotations: { 'k8s.ovn.org/dpu.connection-details': '{"default":{"pfId":"0"}}' },
};
const WRITER = [{ manager: 'writer', fieldsV1: { 'f:spec': { 'f:renewTime': {} } } }];

/** What the states do not have: Plumbline's own objects, other nodes, networks, a DPU, names in a report. */
const INSTALLED: Objects = {
  '/api/v1/nodes': [
    {
      metadata: { name: 'dpu-host', uid: 'n2', labels: DPU_LABELS },
      spec: { unschedulable: true, taints: [{ key: 'dedicated', value: 'x', effect: 'NoSchedule' }] },
      status: { conditions: [DPU_READY] },
    },
  ],
  '/api/v1/pods': [
    {
      metadata: inSystem('agent-1', AGENT),
      spec: {
        nodeName: 'dpu-host',
        containers: [{ name: 'agent', image: IMAGE, command: ['agent'], args: ['--mode'] }],
      },
      status: { phase: 'Running' },
    },
  ],
  '/apis/apps/v1/deployments': [
    {
      metadata: inSystem('plumbline-webhook'),
      spec: { replicas: 2, template: { spec: { containers: [{ name: 'webhook', image: `${IMAGE}-rc1` }] } } },
      status: { readyReplicas: 0 },
    },
  ],
  '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations': webhooks('launcher'),
  '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations': webhooks('mask'),
  '/apis/rbac.authorization.k8s.io/v1/rolebindings': [
    { metadata: inSystem('plumbline-webhook-required'), subjects: [{ kind: 'Group', name: 'g' }] },
  ],
  '/apis/discovery.k8s.io/v1/endpointslices': [
    { metadata: inSystem('plumbline-webhook-1'), endpoints: [{ conditions: { ready: false } }] },
  ],
  '/api/v1/secrets': [{ metadata: inSystem('plumbline-webhook-tls'), data: { 'tls.crt': 'eA==' } }],
  '/apis/kubevirt.io/v1/kubevirts': [
    {
      metadata: { name: 'kubevirt' },
      spec: { configuration: { developerConfiguration: { featureGates: ['Other'] } } },
    },
  ],
  '/apis/k8s.cni.cncf.io/v1/network-attachment-definitions': [
    { metadata: { name: 'fast', namespace: 'tenants' }, spec: { config: NAD } },
  ],
  '/apis/coordination.k8s.io/v1/leases': [
    {
      metadata: { name: 'ovn-dpu-dpu-host', namespace: 'ovn-kubernetes', managedFields: WRITER },
      spec: { holderIdentity: 'dpu', leaseDurationSeconds: 40, renewTime: '2026-11-01T09:00:00.000000Z' },
    },
  ],
};
const REPORTED = {
  conditions: [
    {
      type: 'Known',
      status: 'False',
      reason: 'Unclear',
      message: 'a file is malformed',
      lastTransitionTime: '2026-11-01T09:00:00Z',
    },
  ],
  refusals: [{ ...OWNED, message: 'CPUs 1-2 are not whole cores' }],
  pinning: [{ ...OWNED, state: 'refused', vcpus: 2, message: 'thread CPU 0/KVM does not move' }],
};
/** Documents at one path, not lists. */
const DOCUMENTS = {
  '/version': { gitVersion: 'v1.36.2' },
  '/apis': { groups: [{ name: 'kubevirt.io' }, { name: 'apps' }] },
  '/api/v1/nodes/n1/proxy/configz': {
    kubeletconfig: { cpuManagerPolicy: 'none', cpuManagerPolicyOptions: { x: 'y' }, topologyManagerPolicy: 'none' },
  },
  '/explain': {
    active: false,
    nodes: [
      { node: 'n1', fits: false, kind: 'cpus', text: 'too few free CPUs', reason: '3 CPUs are free', missing: 1 },
      { node: 'n2', fits: true, cpus: '1-2', numaNodes: [0], warnings: ['far from its network'] },
    ],
  },
};

/** A state's objects with everything else. */
function clusterOf(objects: Objects): Objects {
  const paths = new Set([...Object.keys(objects), ...Object.keys(INSTALLED)]);
  const all = Object.fromEntries(
    [...paths].map((path) => [path, [...(objects[path] ?? []), ...(INSTALLED[path] ?? [])]]),
  );
  const reports = (all['/apis/plumbline.dev/v1alpha1/nodetopologies'] ?? []).map((one) => {
    const status = one['status'] as object;
    return { ...one, status: { ...REPORTED, ...status } };
  });
  return { ...all, '/apis/plumbline.dev/v1alpha1/nodetopologies': reports };
}

type Output = { readonly text: string; readonly status: typeof process.exitCode };

/** Runs a command in this process. */
async function run(args: readonly string[]): Promise<Output> {
  return captured(async () => (await runProgram('plumbline', args)) ?? process.exitCode);
}

/** What an action writes to both streams. */
async function captured(action: () => Promise<Output['status']> | Output['status']): Promise<Output> {
  const chunks: string[] = [];
  const { exitCode } = process;
  const streams = [process.stdout, process.stderr];
  const writers = streams.map((stream) => stream.write);
  for (const stream of streams) stream.write = (chunk: unknown) => chunks.push(String(chunk)) > 0;
  try {
    return { status: await action(), text: chunks.join('') };
  } finally {
    for (const [i, stream] of streams.entries()) stream.write = writers[i]!;
    process.exitCode = exitCode;
  }
}

describe('texts of others in the output', function () {
  this.timeout(300_000);
  const { now } = Date;
  const temp = tempDirectories();
  let directory: string;
  let server: Server;
  let url: string;
  let kubeconfig: string;
  let objects: Objects = {};
  let documents: Readonly<Record<string, unknown>> = DOCUMENTS;
  const faults: string[] = [];
  let failure: { readonly status: number; readonly body: string } | undefined;

  before(async () => {
    Date.now = () => NOW;
    directory = temp();
    server = createServer({ maxHeaderSize: 1024 * 1024 }, async (request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '', url);
      const query = Object.fromEntries(searchParams);
      try {
        if (failure !== undefined) return response.writeHead(failure.status).end(failure.body);
        const document = request.method === 'POST' ? {} : documents[pathname];
        response.end(JSON.stringify(document ?? (await createObjectsApi(objects).get(pathname, { query }))));
      } catch (error) {
        const { status: code, reason, message } = error as KubeError;
        response.writeHead(code || 500).end(JSON.stringify({ kind: 'Status', code, reason, message }));
      }
    });
    url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
    kubeconfig = file('kubeconfig', stringify(configOf({})));
  });
  after(() => {
    Date.now = now;
    server.close();
  });
  beforeEach(() => {
    objects = {};
    documents = DOCUMENTS;
    failure = undefined;
    faults.splice(0);
  });

  const file = (name: string, content: string): string => {
    const path = join(directory, name);
    writeFileSync(path, content);
    return path;
  };
  const configOf = (user: object) => kubeconfigOf({ server: url }, user);

  const check = (what: string, { text }: Output) => {
    const strange = strangeIn(text);
    if (strange.length > 0) faults.push(`${what}: ${strange.join(' ')}`);
    if (text.length > MAX_OUTPUT_BYTES) faults.push(`${what}: ${text.length} characters`);
  };
  const assertNoFaults = () => assert.deepEqual(faults.slice(0, 20), [], `${faults.length} faults`);

  const COMMANDS_OF_A_CLUSTER: readonly (readonly string[])[] = [
    ['explain', 'vm', 'fw'],
    ['explain', 'pod', 'virt-launcher-fw-abcde', '-o', 'wide'],
    ['doctor', '--watch', '0', '-o', 'wide'],
    ['top', '--once', '-o', 'wide'],
    ['top', 'n1'],
    ['verify', '-o', 'wide'],
    ['simulate', '--vm', '4c2t', '-o', 'wide'],
    ['status', '-A', '-o', 'wide'],
    ['version'],
    ['bug-report', '--dry-run'],
  ];
  const query = (args: readonly string[]) => run([...args, '--kubeconfig', kubeconfig]);

  it('print something for each command before any text is hostile', async () => {
    objects = clusterOf(STATE_TABLE.find(({ title }) => title === 'runs as promised')!.objects);
    for (const args of COMMANDS_OF_A_CLUSTER) {
      const { text, status } = await query(args);
      assert.ok(
        [undefined, 0, 1].includes(status as number) && text.length > 20,
        `${args.join(' ')}: ${status} ${text}`,
      );
    }
  });

  const FIELDS_AT_ONCE = 3;
  /** Fields without a limit of their own. */
  const FREE = new Set(['message', 'text', 'reason', 'holderIdentity', 'manager']);
  for (const [title, commands] of [
    ['runs as promised', COMMANDS_OF_A_CLUSTER],
    ['no scheduler has tried it yet', COMMANDS_OF_A_CLUSTER.slice(0, 1)],
  ] as const)
    it(`each text of each object of a cluster whose VM ${title}: escaped, and cut if it is long`, async () => {
      const cluster = clusterOf(STATE_TABLE.find((state) => state.title === title)!.objects);
      // Fields of the same kind of object are printed in the same way.
      const fields = [...new Map(textPaths(cluster).map((path) => [path.replaceAll(/\.\d+/g, ''), path])).values()];
      const isFree = (path: string) => FREE.has(path.split('.').at(-1) ?? '');
      for (const [isLong, added] of [
        [false, HOSTILE],
        [true, LONG],
      ] as const) {
        const chosen = fields.filter((path) => isFree(path) === isLong);
        const groups = Math.ceil(chosen.length / FIELDS_AT_ONCE);
        for (let group = 0; group < groups; group++) {
          // Far from each other, so that one does not hide another.
          const paths = chosen.filter((_, index) => index % groups === group);
          objects = withTexts(cluster, (text, at) => (paths.includes(at) ? text + added : text)) as Objects;
          for (const args of commands) check(`${args.join(' ')}: ${paths.join(', ')}`, await query(args));
        }
      }
      assertNoFaults();
    });

  it('each text of an error of the API server', async () => {
    const status = { kind: 'Status', status: 'Failure', reason: 'Forbidden', message: 'pods is forbidden', code: 403 };
    const bodies = withEachText(status, (text) => text + LONG).map(({ document }) => JSON.stringify(document));
    for (const code of [403, 404, 500]) {
      for (const body of [...bodies, LONG]) {
        failure = { status: code, body };
        for (const args of COMMANDS_OF_A_CLUSTER)
          check(`${args.join(' ')}: ${code} ${body.slice(0, 30)}`, await query(args));
      }
    }
    assertNoFaults();
  });

  it('each text of a kubeconfig', async () => {
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: 'false',
      args: ['x'],
      installHint: 'Install it',
    };
    const certificate = { 'client-certificate': '/nonexistent', 'auth-provider': { name: 'oidc', config: { x: 'y' } } };
    for (const user of [{ exec }, certificate]) {
      for (const { path, document } of withEachText(configOf(user), (text) => text + HOSTILE)) {
        const changed = file('changed', stringify(document));
        check(path, await run(['top', '--once', '--kubeconfig', changed]));
        check(`${path}, --context`, await run(['top', '--once', '--kubeconfig', changed, '--context', 'there']));
      }
    }
    assertNoFaults();
  });

  it('each word of the command line', async () => {
    const { commands } = await createProgram('plumbline', () => false);
    const names = commands.map((command) => command.name());
    const lines = names.map((name) => [name, ...(['ovs', 'vm'].includes(name) ? ['status'] : [])]);
    const extra = [[], ['cpu-mask', 'parse'], ['cpu-mask', 'convert', '1', '--to']];
    const flags = '-o --context --kubeconfig --as --extender --agent --sysfs-root --port --vm -f'.split(' ');
    for (const words of [...lines, ...extra]) {
      if (words[0] === 'demo') continue;
      check(words.join(' '), await run([...words, HOSTILE]));
      check(`${words.join(' ')} a/…`, await run([...words, `a/${HOSTILE}`, '--kubeconfig', kubeconfig]));
      for (const flag of flags) check(`${words.join(' ')} ${flag}`, await run([...words, 'x', flag, HOSTILE]));
    }
    for (const flag of ['--physnet', '--topology', '--reserved', '--kubelet'])
      check(flag, await run(['simulate', '--vm', '4c', '--nodes', '1', flag, `physnet0${HOSTILE}=0`, '-o', 'wide']));
    assertNoFaults();
  });

  it('names of objects in the completion', async () => {
    buildCli();
    objects = clusterOf(withEveryText(STATE_TABLE[0]!.objects, (text) => text + HOSTILE) as Objects);
    const { stdout } = await plumbline(['__complete', 'top', ''], { kubeconfig });
    assert.deepEqual(strangeIn(stdout), []);
  });

  for (const color of ['', '1'])
    it(`in views that are redrawn, in progress, in the demo, in warnings of the console${color && ', with colours'}`, async () => {
      const before = process.env.FORCE_COLOR;
      process.env.FORCE_COLOR = color;
      const written: string[] = [];
      const out = { isTTY: false, columns: 80, rows: 24, write: (text: string) => written.push(text) > 0 };
      try {
        const ending = AbortSignal.abort();
        await watch(async () => () => [HOSTILE, [{ style: 'red', text: HOSTILE }, LONG]], {
          seconds: 1,
          out,
          signal: ending,
        });
        let reads = 0;
        const ended = new AbortController();
        const read = async () => {
          if (++reads === 3) ended.abort();
          if (reads > 1) throw new KubeError(500, 'x', HOSTILE);
          return () => [HOSTILE, [{ style: 'red' as const, text: HOSTILE }, LONG]];
        };
        await watch(read, { seconds: 0.001, out, signal: ended.signal });
        let clock = 0;
        const progress = createProgress(out as never, () => (clock += 100));
        progress.update(0.5, HOSTILE);
        const printer = createPrinter(false);
        const demo = await captured(() => {
          printer.title(HOSTILE);
          printer.progress(HOSTILE);
          printer.lines([HOSTILE]);
          printer.step({ step: HOSTILE, succeeded: false, seconds: 1, data: {}, error: HOSTILE });
          printer.end(false, 1, HOSTILE);
          createTerminalLog().warn({ path: HOSTILE, err: new Error(HOSTILE) }, HOSTILE);
          return undefined;
        });
        assert.ok(written.length > 3 && demo.text.length > 100);
        check('demo', demo);
        check('watch and progress', { ...demo, text: written.join('') });
      } finally {
        if (before === undefined) delete process.env.FORCE_COLOR;
        else process.env.FORCE_COLOR = before;
      }
      assertNoFaults();
    });

  for (const format of ['json', 'yaml'] as const)
    it(`are the same in -o ${format}, without a raw control character`, async () => {
      const data = withEveryText({ DOCUMENTS, INSTALLED }, (text) => `${text}${HOSTILE}\ud800`);
      const { text } = await captured(() => print(format, data, { text: () => [] }).then(() => undefined));
      assert.deepEqual(strangeIn(text), []);
      assert.deepEqual(format === 'json' ? JSON.parse(text) : parse(text), JSON.parse(JSON.stringify(data)));
    });

  it('have one way to a terminal: no file of the command writes by itself', () => {
    // demo/demo.ts only listens for errors of the terminal.
    const writers = ['completion/complete.ts', 'demo/demo.ts', 'main.ts', 'start.ts', 'top/run.ts'];
    writers.push('support/output.ts', 'support/watch.ts');
    const files = readdirSync(join(root, 'cli'), { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.ts'),
    );
    const direct = files.filter((name) =>
      /process\.std(out|err)|\bconsole\.(log|error|warn|info|debug)|styleText|\.write\(|writeSync|createWriteStream|fs\.write/.test(
        readFileSync(join(root, 'cli', name), 'utf8').replaceAll(/^\s*(\/\/|\*|\/\*).*$/gm, ''),
      ),
    );
    assert.deepEqual(direct.filter((name) => !writers.includes(name)).sort(), ['support/terminal.ts']);
  });
});
