import { setTimeout as delay } from 'node:timers/promises';
import type { Replica, Stage } from '../../test/real/scheduler/stage.ts';

/** Waits until no node changes any more: the extender has written the labels for the reports. */
export async function untilQuiet(stage: Stage): Promise<void> {
  const version = async () => {
    const { metadata } = (await stage.client.get('/api/v1/nodes', { query: { limit: 1 } })) as {
      metadata: { resourceVersion: string };
    };
    return metadata.resourceVersion;
  };
  for (let before = await version(); ; ) {
    await delay(3000);
    const now = await version();
    // Only the active replica's Lease is renewed, about twice in that time.
    if (Number(now) - Number(before) < 10) return;
    before = now;
  }
}

/**
 * Checks that the extender uses the report of every node. Without it, it answers from the number of CPUs alone, and a
 * measurement would not show what it usually does.
 *
 * @throws Error if a report is in quarantine
 */
export async function requireReports({ metric }: Pick<Replica, 'metric'>): Promise<void> {
  const quarantined = await metric('plumbline_extender_quarantined_reports');
  if (quarantined > 0) {
    throw new Error(
      `${quarantined} reports are in quarantine; make the Nodes of this benchmark agree with their reports`,
    );
  }
}
