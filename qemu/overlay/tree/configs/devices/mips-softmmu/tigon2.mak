# SPDX-License-Identifier: GPL-2.0-or-later
CONFIG_TIGON2=y
