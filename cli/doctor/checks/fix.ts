import { NAMESPACE, WEBHOOK_REQUIRED } from '../../../model/names.ts';
import { type Command, kubectl, type Remedy } from '../../../model/vm-state/remedy.ts';

/** What to do about a finding: in words, and the commands that show or do it. */
export type Fix = Pick<Remedy, 'text' | 'commands'>;

export const fix = (text: string, ...commands: readonly Command[]): Fix => ({ text, commands });

/** `kubectl` in plumbline-system. */
export const inSystem = (...args: readonly string[]): Command => kubectl('-n', NAMESPACE, ...args);

/** Switches all of Plumbline's webhooks off, until what is installed is applied again. */
export const BREAK_GLASS = fix(
  'if VMs must start before it is fixed, without Plumbline, switch its webhooks off',
  inSystem('delete', 'rolebinding', WEBHOOK_REQUIRED),
);

/** Installs, or restores what was changed. */
export const APPLY = fix('apply the manifests', kubectl('apply', '--server-side', '-k', 'manifests/base'));
