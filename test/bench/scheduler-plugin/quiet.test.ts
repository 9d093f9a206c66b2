import { doesNotReject, rejects } from 'node:assert/strict';
import { requireReports } from '../../../bench/scheduler-plugin/quiet.ts';

describe('bench/scheduler-plugin/quiet', () => {
  it('refuses to measure an extender that ignores reports', async () => {
    await rejects(requireReports({ metric: async () => 3 }), /^Error: 3 reports are in quarantine/);
    await doesNotReject(requireReports({ metric: async () => 0 }));
  });
});
