import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createEmbeddedCluster } from '../../cli/demo/cluster.ts';
import { until } from '../../cli/demo/until.ts';
import { DEMO_NAMESPACE, demoMachine, reportedCpus, untilRunning } from '../../cli/demo/vms.ts';
import { checkDpus, watchDpus } from '../../cli/doctor/checks/dpu.ts';
import { readFindings } from '../../cli/doctor/run.ts';
import { explain } from '../../cli/explain/explain.ts';
import { readSubject } from '../../cli/explain/subject.ts';
import { readStatus } from '../../cli/status/read.ts';
import { statusLines } from '../../cli/status/run.ts';
import type { ClusterAccess } from '../../cli/support/cluster.ts';
import { findCluster } from '../../cli/support/connection.ts';
import { lineText } from '../../cli/support/terminal.ts';
import { commandText } from '../../diagnosis/remedies.ts';
import { createKubeClient } from '../../kube/api-transport.ts';
import { accessOf } from '../../kube/kubeconfig.ts';
import { diagnoseDpu } from '../../model/lease/diagnose.ts';
import { DPU_LEASE_NAMESPACE, DPU_LEASE_PREFIX } from '../../model/names.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  DAEMON_SETS,
  DEPLOYMENTS,
  MUTATING_WEBHOOKS,
  NODES,
  ROLE_BINDINGS,
  SECRETS,
  VALIDATING_WEBHOOKS,
  VIRTUAL_MACHINES,
} from '../../sandbox/api-server/built-in-types.ts';
import { shell } from '../diagnosis/remedy-commands-fixture.ts';
import { needs } from '../support/parts.ts';
import { listenOnLoopback } from '../support/processes.ts';
import { type Break, LANES, LAST } from './outages/breaks.ts';
import { type OutageStage, startOutageStage } from './outages/stage.ts';

/** Seconds that the commands may need on a busy machine, in addition to what a part needs to know of a break. */
const MARGIN_SECONDS = 90;
/** Until Leases, probes and back-offs have returned to what they were. */
const HEALING_SECONDS = 90;

/** As in outages.test.ts: longer than the Lease of the demo's DPU. */
const WATCH_SECONDS = 4;

const OUTPUTS = ['status', 'explain', 'doctor'] as const;
type Output = (typeof OUTPUTS)[number];

/** Seconds after the break; undefined: this output does not name it. */
type Outcome = { readonly [name in Output | 'healed']?: number } & {
  readonly failure?: string;
  /** Printed commands that failed, with what they wrote. */
  readonly failed?: readonly string[];
};

type Finding = Awaited<ReturnType<typeof readFindings>>['findings'][number];

/** `kubectl rollout restart` sets it, and nothing else. */
const RESTARTED_AT = 'kubectl.kubernetes.io/restartedAt';

/** Objects that no fix may change. */
const COMPARED = [
  MUTATING_WEBHOOKS,
  VALIDATING_WEBHOOKS,
  ROLE_BINDINGS,
  CUSTOM_RESOURCE_DEFINITIONS,
  DEPLOYMENTS,
  DAEMON_SETS,
  SECRETS,
];

function contentsOf({ cluster: { client } }: OutageStage): Record<string, unknown> {
  const objects = COMPARED.flatMap((type) => client.list(type).map((object) => ({ type, object })));
  const entries = objects.map(({ type, object: { metadata, status: _, ...rest } }) => {
    const { name, namespace, labels, annotations } = metadata;
    return [`${type.kind} ${namespace ?? ''}/${name}`, { ...rest, labels, annotations }] as const;
  });
  const cordoned = client.list(NODES).map(({ metadata, spec }) => [`Node ${metadata.name}`, spec ?? {}] as const);
  const sorted = Object.fromEntries([...entries, ...cordoned].sort());
  const isOnlyRestart = (annotations: object) => Object.keys(annotations).every((key) => key === RESTARTED_AT);
  const withoutRestart = (key: string, value: unknown) =>
    key === RESTARTED_AT || (key === 'annotations' && isOnlyRestart(value ?? {})) ? undefined : value;
  return JSON.parse(JSON.stringify(sorted, withoutRestart));
}

/** What the commands print now, as their code computes it. */
class Commands {
  readonly #cluster: ClusterAccess;
  #findings: Promise<readonly Finding[]> | undefined;

  constructor(cluster: ClusterAccess) {
    this.#cluster = cluster;
  }

  /** Its first line. */
  async status(): Promise<string> {
    const page = { width: Number.POSITIVE_INFINITY, color: false };
    const lines = readStatus(this.#cluster, undefined, Date.now()).then((status) =>
      statusLines(status, undefined, page),
    );
    return lines.then(([line = []]) => lineText(line)).catch(({ message }: Error) => message.split('\n', 1).join());
  }

  async explain(name: string): Promise<string> {
    const reference = { kind: 'vm', namespace: DEMO_NAMESPACE, name } as const;
    const explained = readSubject(this.#cluster.client, reference, DEMO_NAMESPACE)
      .then((subject) => explain(this.#cluster, subject, {}, Date.now()))
      .then(({ text }) => text);
    return explained.catch((error: Error) => error.message);
  }

  /** All other areas. One run at a time for all callers: with a hung webhook it takes ten seconds. */
  async doctor(): Promise<readonly string[]> {
    return this.findings().then(
      (findings) => findings.flatMap(textsOf),
      (error: Error) => [error.message],
    );
  }

  findings(): Promise<readonly Finding[]> {
    this.#findings ??= readFindings(this.#cluster, Date.now())
      .then(({ findings }) => findings)
      .finally(() => {
        this.#findings = undefined;
      });
    return this.#findings;
  }

  /** Of the area dpu alone, which watches the Leases for some seconds. */
  async dpus(): Promise<readonly string[]> {
    const { client } = this.#cluster;
    const seen = await watchDpus(client, DPU_LEASE_NAMESPACE, WATCH_SECONDS, () => undefined);
    const diagnoses = seen.map((one) => diagnoseDpu(DPU_LEASE_PREFIX + one.node, one));
    const { findings } = checkDpus(diagnoses, WATCH_SECONDS);
    return findings.map(({ area, what }) => `${area}: ${what}`);
  }
}

const textsOf = ({ area, what, consequences = [] }: Finding): string[] =>
  [what, ...consequences].map((text) => `${area}: ${text}`);

/** What needs a folder of an operator, or a controller of Deployments. */
const NOT_HERE = /^npm |-k \.$|^plumbline |delete pod /;

/** Runs the commands of a finding's fix as they are printed. @returns those that fail */
async function runFix({ kubeconfig }: OutageStage, { fix }: Finding): Promise<string[]> {
  const failed: string[] = [];
  for (const text of fix.commands.map(commandText).filter((one) => !NOT_HERE.test(one))) {
    const { status, output } = await shell(text, kubeconfig);
    if (status !== 0) failed.push(`${text}: ${output}`);
  }
  return failed;
}

/** Breaks one thing, waits until every output names it, fixes it, and waits until none does. */
async function play(stage: OutageStage, commands: Commands, one: Break): Promise<Outcome> {
  const { client } = stage.cluster;
  const { vm, seconds = 0 } = one;
  const doctor = () => (one.watchesLeases ? commands.dpus() : commands.doctor());
  const create = () => client.create(VIRTUAL_MACHINES, demoMachine(vm!));
  if (vm?.runsBefore) {
    await create();
    const { spec, metadata } = await untilRunning(stage.cluster, vm.name, MARGIN_SECONDS);
    await until('the report of its CPUs', MARGIN_SECONDS, () =>
      reportedCpus(stage.cluster, spec.nodeName ?? '', metadata.uid ?? ''),
    );
  }
  const began = performance.now();
  const fix = await one.inflict(stage);
  const since = () => Math.round((performance.now() - began) / 100) / 10;
  const see = async (output: Output, pattern: RegExp | undefined, read: () => Promise<string | readonly string[]>) => {
    if (pattern === undefined) return [];
    let last: string | readonly string[] = '';
    const isNamed = async () => {
      last = await read();
      return [last].flat().some((text) => pattern.test(text)) ? true : undefined;
    };
    await until(`${output} to name it`, seconds + MARGIN_SECONDS, isNamed).catch((error: Error) => {
      throw new Error(`${error.message}: ${[last].flat().join('\n')}`);
    });
    return [[output, since()] as const];
  };
  try {
    if (vm !== undefined && !vm.runsBefore) await create();
    const seen = await Promise.all([
      see('status', one.status, () => commands.status()),
      see('explain', one.explain, () => commands.explain(vm?.name ?? '')),
      see('doctor', one.doctor, doctor),
    ]);
    const named = one.watchesLeases || one.doctor === undefined ? [] : await commands.findings().catch(() => []);
    const own = named.find((finding) => textsOf(finding).some((text) => one.doctor?.test(text)));
    const failed = own === undefined ? [] : await runFix(stage, own);
    await fix();
    if (vm !== undefined) {
      const machine = client.get(VIRTUAL_MACHINES, DEMO_NAMESPACE, vm.name);
      if (machine !== undefined) await client.delete(VIRTUAL_MACHINES, machine);
    }
    const fixed = performance.now();
    await until('doctor to find nothing of it', HEALING_SECONDS, async () => {
      const isGone = one.doctor === undefined || !(await doctor()).some((text) => one.doctor?.test(text));
      return isGone && !one.status?.test(await commands.status()) ? true : undefined;
    });
    const healed = Math.round((performance.now() - fixed) / 100) / 10;
    return { ...Object.fromEntries(seen.flat()), healed, failed };
  } catch (error) {
    await fix();
    return { failure: (error as Error).message };
  }
}

describe('one thing that breaks', function () {
  needs('linux');
  needs('root');
  needs('kubectl');
  this.timeout(900_000);
  let stage: OutageStage;
  const outcomes = new Map<string, Outcome>();
  let atFirst: Record<string, unknown>;
  let atLast: Record<string, unknown>;

  before(async () => {
    stage = await startOutageStage(createEmbeddedCluster);
    const config = findCluster({ kubeconfig: stage.kubeconfig });
    const client = createKubeClient(accessOf(config), 'test');
    const commands = new Commands({ client, config, namespace: DEMO_NAMESPACE, clusterText: '' });
    const isClean = async () => ((await commands.doctor()).length === 0 ? true : undefined);
    try {
      await until('a cluster without findings', MARGIN_SECONDS, isClean);
      atFirst = contentsOf(stage);
      const inTurn = async (breaks: readonly Break[]) => {
        for (const defect of breaks) outcomes.set(defect.name, await play(stage, commands, defect));
      };
      await Promise.all(LANES.map(inTurn));
      await inTurn(LAST);
      for (const [name, { failure }] of outcomes) if (failure !== undefined) console.log(`${name}: ${failure}`);
      await until('a cluster without findings', HEALING_SECONDS, isClean);
      atLast = contentsOf(stage);
    } finally {
      await client.close();
    }
  });
  after(async () => {
    const row = (name: string, cells: object) =>
      name.padEnd(48) +
      [...OUTPUTS, 'healed'].map((column) => String(Reflect.get(cells, column) ?? '-').padStart(8)).join('');
    const header = { status: 'status', explain: 'explain', doctor: 'doctor', healed: 'healed' };
    console.log(
      [['seconds until it is named by', header] as const, ...outcomes]
        .map(([name, cells]) => row(name, cells))
        .join('\n'),
    );
    await stage?.stop();
  });

  for (const { name, ...expected } of [...LANES.flat(), ...LAST]) {
    const by = OUTPUTS.filter((output) => expected[output] !== undefined);
    it(`${name}: ${by.length === 0 ? '' : `named by ${by.join(', ')}, and `}heals`, () => {
      const outcome = outcomes.get(name);
      assert.equal(outcome?.failure, undefined);
      assert.deepEqual(outcome?.failed, [], 'each command of the fix runs as printed');
      assert.ok(by.every((output) => outcome?.[output] !== undefined));
    });
  }

  it('no fix changed anything else', () => assert.deepEqual(atLast, atFirst));

  for (const [what, text] of [
    ['is gone', 'nothing listens there'],
    ['hangs', 'it does not answer in time'],
  ] as const) {
    it(`an API server that ${what} is named with context and server`, async () => {
      const silent = createServer();
      const port = await listenOnLoopback(silent);
      const server = `https://127.0.0.1:${what === 'hangs' ? port : 1}`;
      const path = join(stage.directory, 'other.kubeconfig');
      await writeFile(path, (await readFile(stage.kubeconfig, 'utf8')).replace(/server: \S+/, `server: ${server}`));
      const { output, status } = await stage.plumbline('status', '--kubeconfig', path, '--request-timeout', '3');
      silent.close();
      assert.ok(output.includes(text) && output.includes(`(context plumbline-sandbox, server ${server})`), output);
      assert.equal(status, 3);
    });
  }
});
