/** Ways to treat Open vSwitch when a VM gets CPUs of its own. */
export const CONTENDERS = ['apart', 'unmanaged', 'loop', 'plumbline'] as const;
export type Contender = (typeof CONTENDERS)[number];

export const TITLES: Readonly<Record<Contender, string>> = {
  apart: 'always on other CPUs',
  unmanaged: 'unmanaged',
  loop: 'loop, every second',
  plumbline: 'Plumbline',
};
