import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../../cli/demo/until.ts';
import {
  DEMO_NAMESPACE,
  demoLauncher,
  demoMachine,
  machineFrom,
  reportedCpus,
  untilRunning,
} from '../../../cli/demo/vms.ts';
import { EVENTS, NODES, VIRTUAL_MACHINES } from '../../../sandbox/api-server/built-in-types.ts';
import type { OutageStage } from './stage.ts';
import { OUTAGES, type Outage } from './table.ts';

/** Seconds from a signal to the doctor for which the VMs and the kubelets of the stage need themselves. */
const MARGIN_SECONDS = 15;
/** Until the extender knows that a Lease has ended. */
const AFTER_LEASE_SECONDS = 2;
/** Seconds of watching the Leases of DPUs. */
const WATCH_SECONDS = '4';

/** Declares a test for each row of the table, on a stage that is started in `before`. */
export function testOutages(stageOf: () => OutageStage): void {
  it('nothing is killed: no problems found', async () => {
    const { plumbline } = stageOf();
    await until('the doctor to find no problems', 30, async () => {
      const { status, output } = await plumbline('doctor', '--watch', WATCH_SECONDS);
      return status === 0 && output.includes('no problems found') ? true : undefined;
    });
  });

  for (const outage of OUTAGES) {
    const result = outage.status === 0 ? 'no output names it' : `named within its ${outage.seconds} s`;
    it(`${outage.part}: ${result}`, async () => {
      const stage = stageOf();
      if (outage.vm?.runsBefore) await createVm(stage, outage.vm);
      await kill(stage, outage.part);
      await Promise.all([seeVms(stage, outage), seeObjects(stage, outage), seeCommands(stage, outage)]);
      if (outage.part === 'dpu') await stage.installed.dpuSide.start();
    });
  }
}

async function kill({ installed, console: console_ }: OutageStage, part: Outage['part']): Promise<void> {
  const daemons = {
    console: [console_],
    agents: [installed.agents.get('smt2'), installed.agents.get('dpu')],
    extender: [installed.schedulerPlugin],
    webhook: [installed.webhook],
  };
  if (part === 'dpu') await installed.dpuSide.kill();
  else await Promise.all(daemons[part].map((daemon) => daemon?.stop('SIGKILL')));
}

async function createVm(
  { cluster }: OutageStage,
  { name, node, runsBefore }: NonNullable<Outage['vm']>,
): Promise<void> {
  const vm = demoMachine({ name, annotated: true, ...(node !== undefined && { node }) });
  await cluster.client.create(VIRTUAL_MACHINES, vm);
  if (!runsBefore) return;
  const { spec, metadata } = await untilRunning(cluster, name, MARGIN_SECONDS);
  await until(`the report of its CPUs`, MARGIN_SECONDS, () =>
    reportedCpus(cluster, spec.nodeName ?? '', metadata.uid ?? ''),
  );
}

/** Creates the VM of the row, and one that asks for nothing of Plumbline. */
async function seeVms(stage: OutageStage, { part, seconds, vm, plainVmStarts }: Outage): Promise<void> {
  const { cluster } = stage;
  const { client } = cluster;
  await delay((seconds + AFTER_LEASE_SECONDS) * 1000);
  if (vm !== undefined && !vm.runsBefore) await createVm(stage, vm);
  const name = `plain-${part.replaceAll(' ', '-')}`;
  const cpu = { sockets: 1, cores: 1, threads: 1 };
  await client.create(VIRTUAL_MACHINES, machineFrom(name, {}, cpu, undefined));
  if (plainVmStarts) await untilRunning(cluster, name, MARGIN_SECONDS);
  else {
    await delay(MARGIN_SECONDS * 1000);
    assert.notEqual(demoLauncher(cluster, name)?.status?.phase, 'Running', `${name} was placed without the extender`);
  }
}

async function seeObjects({ cluster, installed }: OutageStage, outage: Outage): Promise<void> {
  const { condition, event, log, seconds } = outage;
  const { client } = cluster;
  const within = seconds + MARGIN_SECONDS;
  if (condition !== undefined) {
    const { node, ...expected } = condition;
    await until(`the condition ${expected.type} of ${node}`, within, () => {
      const { conditions = [] } = client.get(NODES, undefined, node)?.status ?? {};
      const { status, reason } = conditions.find(({ type }) => type === expected.type) ?? {};
      return status === expected.status && reason === expected.reason ? true : undefined;
    });
  }
  if (event !== undefined) {
    await until(`an Event ${event.reason}`, within, () =>
      client.list(EVENTS).find(({ reason, message }) => reason === event.reason && event.message.test(String(message))),
    );
  }
  if (log !== undefined) {
    await until(`a line ${log} in the extender’s log`, within, () =>
      installed.schedulerPlugin.log().find((line) => log.test(JSON.stringify(line))),
    );
  }
}

async function seeCommands(
  stage: OutageStage,
  { doctor, status, statusLine, explain, vm, seconds }: Outage,
): Promise<void> {
  const within = seconds + MARGIN_SECONDS;
  let last = '';
  await until('the doctor to name it', within, async () => {
    const answer = await stage.plumbline('doctor', '--watch', WATCH_SECONDS);
    last = answer.output;
    return answer.status === status && doctor.test(answer.output) ? true : undefined;
  }).catch((error: Error) => assert.fail(`${error.message}: ${last}`));
  await until('status to name it', within, async () => {
    last = (await stage.plumbline('status')).output;
    return statusLine?.test(last.split('\n', 1).join()) === false ? undefined : true;
  }).catch((error: Error) => assert.fail(`${error.message}: ${last}`));
  if (explain === undefined || vm === undefined) return;
  await until('explain to name it', within, async () => {
    last = (await stage.plumbline('explain', 'vm', vm.name, '-n', DEMO_NAMESPACE)).output;
    return explain.test(last) ? true : undefined;
  }).catch((error: Error) => assert.fail(`${error.message}: ${last}`));
}
