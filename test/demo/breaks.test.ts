import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
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

  async status(): Promise<string> {
    const now = Date.now();
    const text = readStatus(this.#cluster, undefined, now).then((status) =>
      statusLines(status, undefined, { width: Number.POSITIVE_INFINITY, color: false })
        .map((line) => lineText(line))
        .join('\n'),
    );
    return text.catch((error: Error) => error.message);
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
    const { findings } = checkDpus(
      seen.map((one) => diagnoseDpu(DPU_LEASE_PREFIX + one.node, one)),
      WATCH_SECONDS,
    );
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
  const { vm, seconds } = one;
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
      see('status', one.status, async () => firstLine(await commands.status())),
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
      return isGone && !one.status?.test(firstLine(await commands.status())) ? true : undefined;
    });
    const healed = Math.round((performance.now() - fixed) / 100) / 10;
    return { ...Object.fromEntries(seen.flat()), healed, failed };
  } catch (error) {
    await fix();
    return { failure: (error as Error).message };
  }
}

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';

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
    const row = (name: string, cells: readonly unknown[]) =>
      name.padEnd(48) + cells.map((cell) => String(cell ?? '-').padStart(8)).join('');
    const columns = [...OUTPUTS, 'healed'] as const;
    const rows = [...outcomes].map(([name, outcome]) =>
      row(
        name,
        columns.map((column) => outcome[column]),
      ),
    );
    console.log([row('seconds until it is named by', columns), ...rows].join('\n'));
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

  it('an API server that is gone is named with context and server', async () => {
    const { output, status } = await statusOf(stage, 'https://127.0.0.1:1');
    assert.match(output, /nothing listens there.*\(context plumbline-sandbox, server https:\/\/127\.0\.0\.1:1\)/);
    assert.equal(status, 3);
  });

  it('an API server that hangs is named with context and server', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { output, status } = await statusOf(stage, url);
    server.close();
    assert.ok(output.includes(`(context plumbline-sandbox, server ${url})`), output);
    assert.match(output, /it does not answer in time/);
    assert.equal(status, 3);
  });
});

/** `status` with a kubeconfig of another server. */
async function statusOf({ kubeconfig, directory, plumbline }: OutageStage, server: string) {
  const path = join(directory, 'other.kubeconfig');
  await writeFile(path, (await readFile(kubeconfig, 'utf8')).replace(/server: \S+/, `server: ${server}`));
  return plumbline('status', '--kubeconfig', path, '--request-timeout', '3');
}
