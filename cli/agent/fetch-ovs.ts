import { type AskAgent, readPage } from './ask.ts';
import { type OvsStatus, ovsStatus } from './ovs-status.ts';

/** @throws CliError if the agent cannot be reached, or does not manage Open vSwitch */
export function fetchOvsStatus(ask: AskAgent): Promise<OvsStatus> {
  return readPage(
    ask,
    '/ovs',
    ovsStatus,
    'this agent does not manage Open vSwitch (its --mode is not full, or it is too old)',
  );
}
