import { type AskAgent, readPage } from './ask.ts';
import { type OvsStatus, ovsStatus } from './ovs-status.ts';

/** @throws CliError if the agent cannot be asked, or has nothing to say about Open vSwitch */
export function fetchOvsStatus(ask: AskAgent): Promise<OvsStatus> {
  return readPage(
    ask,
    '/ovs',
    ovsStatus,
    'this agent manages no Open vSwitch (its --mode is not full, or it is too old)',
  );
}
