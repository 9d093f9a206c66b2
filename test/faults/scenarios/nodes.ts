import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DPU_READY_CONDITION } from '../../../model/names.ts';
import { NODES as NODE_TYPE } from '../../../sandbox/api-server/built-in-types.ts';
import { DPU_NODE, VSWITCH_NODE } from '../world/nodes.ts';
import type { FaultContext, Scenario } from './scenario.ts';

const BOTH = ['sandbox', 'real'] as const;
const HOUR = 3_600_000;

export const ON_NODES: readonly Scenario[] = [
  {
    name: 'dpu-clock',
    title: 'the DPU’s clock jumps by up to a year: no component compares clocks, so the DPU stays alive',
    on: BOTH,
    vms: 120,
    run: dpuClock,
  },
  {
    name: 'disk-full',
    title: 'the disk with the agent’s files is full, even when the agent starts',
    on: BOTH,
    vms: 120,
    // Meanwhile the agent is killed together with the device plugin.
    launchersMayFail: true,
    missing: () => (process.getuid?.() === 0 ? undefined : 'mounting a small file system needs root'),
    run: diskFull,
  },
];

async function dpuClock({ world, random, note }: FaultContext): Promise<void> {
  const { client } = world.cluster;
  const dead: string[] = [];
  const end = client.follow(NODE_TYPE, ({ object: { metadata, status } }) => {
    if (metadata.name !== DPU_NODE) return;
    const found = status?.conditions?.find(({ type }) => type === DPU_READY_CONDITION);
    if (found?.status === 'False') dead.push(String(found.message));
  });
  const jumps = [-24 * 365 * HOUR, -HOUR, -1000, 1000, HOUR, 24 * 365 * HOUR];
  for (let i = 0; i < 12; i++) {
    await writeFile(world.daemons.dpuClock, String(random.oneOf(jumps)));
    await delay(400 + random.below(1600));
  }
  await writeFile(world.daemons.dpuClock, '0');
  end();
  note('12 jumps');
  if (dead.length > 0) throw new Error(`the DPU was taken for dead: ${dead[0]}`);
}

async function diskFull({ world, random }: FaultContext): Promise<void> {
  const directory = world.daemons.stateDirectory(VSWITCH_NODE);
  const agent = world.daemons.get(`agent-${VSWITCH_NODE}`);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'plumbline-faults', directory]);
  try {
    await writeFile(join(directory, 'filler'), Buffer.alloc(64 * 1024)).catch(() => undefined);
    for (let i = 0; i < 3; i++) {
      await delay(1500 + random.below(1500));
      agent.kill();
    }
    await delay(2000);
  } finally {
    execFileSync('umount', ['--lazy', directory]);
  }
}
