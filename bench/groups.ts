import type { BenchGroup } from './support/settings.ts';

const webhook: readonly BenchGroup[] = [
  {
    names: ['webhook.reviews-over-express', 'webhook.reviews-over-minimal-express'],
    load: async () => {
      const speed = await import('./webhook/speed.ts');
      return [speed.reviewsOverExpress, speed.reviewsOverMinimalExpress];
    },
  },
  {
    names: ['webhook.reviews-over-pepr', 'webhook.rss-over-pepr-same-run'],
    load: async () => [(await import('./webhook/speed.ts')).peerPepr],
  },
  {
    names: ['webhook.rss-over-pepr', 'webhook.private-memory-growth-in-100k-reviews'],
    load: async () => [(await import('./webhook/memory.ts')).memoryOverReviews],
    alongside: 'counts',
  },
  {
    names: ['webhook.caches-of-10k-networks-and-5k-nodes'],
    load: async () => [(await import('./webhook/memory.ts')).memoryOfCaches],
    alongside: 'counts',
  },
];

const schedulerPlugin: readonly BenchGroup[] = [
  {
    names: ['scheduler-plugin.share-of-a-core'],
    load: async () => [(await import('./scheduler-plugin/updates.ts')).reportUpdates],
    alongside: 'counts',
  },
  {
    names: ['scheduler-plugin.filter-'],
    load: async () => [(await import('./scheduler-plugin/filter.ts')).filterTime],
  },
  {
    names: ['scheduler-plugin.only-fit'],
    load: async () => [(await import('./scheduler-plugin/only-fit.ts')).onlyFit],
  },
  {
    names: ['scheduler-plugin.realistic-load'],
    load: async () => [(await import('./scheduler-plugin/load.ts')).realisticLoad],
  },
];

const nodeAgent: readonly BenchGroup[] = [
  {
    names: ['node-agent.rename-to-published'],
    load: async () => [(await import('./node-agent/published.ts')).renameToPublished],
  },
  {
    names: ['node-agent.private-megabytes', 'node-agent.idle-percent'],
    load: async () => [(await import('./node-agent/idle.ts')).longRun],
    alongside: 'waits',
  },
  {
    names: ['node-agent.ovs-reaction'],
    load: async () => [(await import('./node-agent/ovs-reaction.ts')).ovsReaction],
  },
  {
    names: ['node-agent.idle-system-calls', 'node-agent.resident'],
    load: async () => [(await import('./node-agent/idle.ts')).idleAgent],
    alongside: 'waits',
  },
];

const onRequest: readonly BenchGroup[] = (
  [
    ['kube-scheduler.', async () => (await import('./scheduler-plugin/real-scheduler.ts')).besideRealScheduler],
    ['fairness.', async () => (await import('./scheduler-plugin/fairness.ts')).victimBesideTenant],
    ['outage.', async () => (await import('./scheduler-plugin/real-scheduler.ts')).ordinaryDuringOutage],
    ['takeover.', async () => (await import('./scheduler-plugin/takeover.ts')).takeover],
    ['interference.stolen-', async () => (await import('./interference/index.ts')).interference],
    ['interference.kernel-', async () => (await import('./interference/kernel.ts')).kernelInterference],
  ] as const
).map(([name, bench]) => ({ names: [name], load: async () => [await bench()], onRequest: true }));

/** Prefixes of each group's names, so that a prefix only runs the required groups. */
export const GROUPS: readonly BenchGroup[] = [
  ...webhook,
  { names: ['console.'], load: async () => [(await import('./console/index.ts')).pageInChromium] },
  {
    names: ['cli.'],
    load: async () => [
      (await import('./cli/index.ts')).explainOverBareNode,
      (await import('./cli/index.ts')).drainOfLargeCluster,
    ],
    alongside: 'counts',
  },
  { names: ['native.'], load: async () => [(await import('./native/gate.ts')).gateOverDelegate] },
  { names: ['vm-pinning.'], load: async () => (await import('./vm-pinning/index.ts')).VM_PINNING_BENCHES },
  {
    names: ['webhook', 'scheduler-plugin', 'node-agent'].flatMap((daemon) => [
      `${daemon}.start-up-over-bare-node`,
      `${daemon}.rss-over-bare-node`,
    ]),
    load: async () => [(await import('./daemons/index.ts')).startUpAndMemory],
  },
  // At the end, since other work disturbs the slowest hundredth of calls most: a quick run has finished most of its other lanes.
  ...schedulerPlugin,
  ...nodeAgent,
  ...onRequest,
];
