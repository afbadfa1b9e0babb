"""The command line.

Exit codes: 0 all is well; 1 a gate is not met, or something was not scored that should have been; 2 nothing could be run;
130 and 143 interrupted.
"""

from judgekit.cli.app import load_commands as load_commands
from judgekit.cli.app import main as main
